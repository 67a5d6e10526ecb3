/*
 * output - from the ids of a choice to the events of its request: whole
 * characters, stop strings, log probabilities, and for a conversation the
 * parts (reasoning, content, tool calls).
 *
 * Every byte of the text goes out in exactly one event and in order; a log
 * probability goes out with the event that holds the end of its token's text.
 *
 * Thread: ENGINE.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/str.h"
#include "daemon/chat/chat.h"
#include "daemon/engine/stop.h"
#include "daemon/engine/work.h"
#include "daemon/sampling/sampler.h"
#include "daemon/tokenizer/tokenizer.h"

struct output {
    struct engine *e;
    struct task *task;
    const struct tokenizer *tokenizer; /* NULL: no text comes out */
    unsigned choice;
    struct view prompt;       /* of a conversation, as rendered */
    uint64_t seed;            /* of the ids of tool calls */
    struct chat_split *split; /* NULL: plain text */
    unsigned n_calls;
    bool reasoned;           /* the text fed last was reasoning, at least in part */
    size_t reasoning_tokens; /* of the choice */
    struct detok detok;
    struct stop_filter stops;
    size_t fed_bytes;              /* of the choice's text, into the stop filter */
    size_t sent_bytes;             /* out of it */
    struct token_logprob *waiting; /* texts are offsets into bytes until they are sent */
    size_t *waiting_ends;          /* where in the choice's text the token ends */
    size_t n_waiting, cap_waiting, cap_ends;
    struct str bytes;
    struct str piece, passed; /* scratch */
    size_t most_waiting, most_bytes;
    size_t
        kept_bytes; /* of all choices: what waits, and of an answer that is sent whole what is kept of it */
};

/* prompt: borrowed until output_clear. */
void output_init(struct output *o, struct engine *e, struct task *t,
                 const struct tokenizer *tokenizer, struct view prompt, uint64_t seed);
void output_clear(struct output *o);

void output_begin(struct output *o, unsigned choice);
void output_echo(struct output *o, struct view prompt);
/* lp (may be NULL): its texts are filled in here.  True: a stop string has ended the choice. */
bool output_token(struct output *o, int32_t id, const struct token_logprob *lp);
/* What was held back goes out (but nothing behind a stop string), then EVENT_CHOICE_DONE. */
void output_end(struct output *o, enum finish finish);

/* Ids of the tokens whose text holds one of DRY's breakers, into the sampler. */
void output_set_breakers(const struct output *o, struct sampler *s,
                         const struct sampling_options *opt);
