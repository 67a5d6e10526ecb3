/*
 * run - one request while ENGINE works on it: what prepare.c, prefill.c,
 * decode.c and output.c hand to each other.
 */
#pragma once

#include "daemon/engine/engine_priv.h"
#include "daemon/engine/output.h"
#include "daemon/model/model.h"
#include "daemon/sampling/sampler.h"
#include "daemon/tokenizer/tokenizer.h"

struct run {
    struct engine *e;
    struct task *task;
    const struct request *req;
    struct model *model;
    const struct tokenizer *tokenizer; /* NULL: ids only */
    struct model_info info;
    struct sampling_options sampling; /* complete: the request's, the file's, the defaults */
    struct sampling_bias *bias;       /* the request's, and what ignore_eos bans */
    struct str text;                  /* the prompt as text: rendered, or as given */
    struct token_list prompt;
    struct output output;
    struct sampler *sampler; /* of the choice */
    const float *logits;     /* [n_vocab] of the last position; the model's */
    unsigned choice;
    size_t generated;  /* of the choice */
    size_t max_tokens; /* of a choice */
    size_t charged_requests, charged_scratch;
    size_t computed_tokens; /* prefilled, not taken from before */
    size_t decoded_tokens;  /* computed one by one: the first of a choice comes from the prompt */
    struct request_usage usage;
    struct request_timings timings;
    size_t charged_answer; /* of task->req->bytes */
    int64_t prefill_us, decode_us;
    struct residency_stats before; /* of its model */
};

/* Reserves in the ledger for the time of the run. */
int run_charge(struct run *r, enum account account, size_t bytes, struct err *err);
/* Of the answer, that many bytes in all: they stay charged until it has been handed on. */
int run_charge_answer(struct run *r, size_t bytes, struct err *err);
/* ERR_CANCELLED with the right sentence when the work was cancelled. */
int run_cancelled(const struct run *r, struct err *err);
void run_step(struct run *r, enum request_step step);

/* Ids of a text, or its ids checked, with room for them in the ledger; name is the field's. */
int prepare_ids(struct run *r, const char *name, const int32_t *ids, size_t n, struct err *err);
int prepare_text(struct run *r, struct view text, struct err *err);
/* Conversation or text → ids; sampling options and what the output needs. */
int prepare_request(struct run *r, struct err *err);
/* Gives back all that prepare_request and the choices have taken. */
void prepare_clear(struct run *r);

/* The prompt, but for the part that the sequence holds already; leaves logits of its last token. */
int prefill_prompt(struct run *r, struct err *err);
/* One choice, token by token, to its end. */
int decode_choice(struct run *r, struct err *err);
/* All inputs of an embedding request, one after another. */
int embed_inputs(struct run *r, struct err *err);
