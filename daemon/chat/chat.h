/*
 * chat - a conversation to the text a model reads, and the text it writes back
 * to content, reasoning and tool calls.
 *
 * A chat_template is made once per model: the parsed template, what a few
 * probe renderings showed about it (can it take tools, a system message,
 * arguments as an object, ...), and the dialect the model answers in.  It is
 * never changed after that: any thread.  A chat_split belongs to one choice of
 * one request.
 *
 * What a conversation asks of a template that has no place for it is refused
 * by name; nothing is dropped in silence.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "common/err.h"
#include "common/str.h"
#include "daemon/template/template.h"

struct chat_template;

/* text as in tokenizer.chat_template; NULL: a model without one speaks ChatML. */
int chat_template_create(const char *text, size_t len, struct chat_template **ret, struct err *err);
/* In at most that many bytes of tree (template_parse_within): the text and three times these may be allocated. */
int chat_template_create_within(const char *text, size_t len, size_t memory_bytes,
                                struct chat_template **ret, struct err *err);
size_t chat_template_memory_bytes(const struct chat_template *t);
void chat_template_destroy(struct chat_template *t);

const char *chat_template_dialect(const struct chat_template *t); /* "hermes", "plain", ... */
/*
 * Whether a control token is part of an answer as the splitter reads it: it is one of the dialect's
 * markers, or part of one.  The detokenizer must show those, and leaves out the others.
 */
bool chat_template_shows(const struct chat_template *t, struct view token);

struct chat_options {
    bool add_generation_prompt;
    const json_t *kwargs;  /* object or NULL: more variables (enable_thinking, ...) */
    const char *bos_token; /* NULL: none */
    const char *eos_token;
    struct tm now;                        /* local time, for templates that write the date */
    const struct template_limits *limits; /* NULL: template.h's own */
};

/*
 * messages: OpenAI's array (roles system, developer, user, assistant, tool;
 * content a string, null, or parts of type text).  tools: array or NULL.
 * The output's spans are what came from the caller: no control tokens there.
 *
 * ERR_INVALID names the message; the template's own raise_exception is
 * ERR_INVALID with its text; ERR_UNPROCESSABLE: this template cannot.
 */
int chat_render(const struct chat_template *t, const json_t *messages, const json_t *tools,
                const struct chat_options *options, struct template_output *ret_out,
                struct err *err);

/* -- the answer ---------------------------------------------------------- */

enum chat_event_kind {
    CHAT_CONTENT,   /* text */
    CHAT_REASONING, /* text */
    CHAT_CALL,      /* a call begins: name, call */
    CHAT_ARGUMENTS, /* text: the next part of that call's JSON */
    CHAT_CALL_END,
};

struct chat_event {
    enum chat_event_kind kind;
    struct view text; /* never empty for content, reasoning, arguments; borrowed */
    const char *name; /* of CHAT_CALL; borrowed */
    unsigned call;    /* which call of the answer, from 0 */
};

typedef void chat_event_fn(void *arg, const struct chat_event *event);

struct chat_split;

struct chat_split_options {
    bool reasoning;      /* apart from content; else it stays in it, markers and all */
    const json_t *tools; /* borrowed; NULL: none were offered, so nothing is a call */
    struct view prompt;  /* as rendered: it may have opened the reasoning already */
};

struct chat_split *chat_split_create(const struct chat_template *t,
                                     const struct chat_split_options *options, chat_event_fn *sink,
                                     void *arg);
/*
 * Whole or part of a piece of text; what may be the beginning of a marker is
 * held back.  How the text is cut into pieces does not change what comes out
 * (joined by kind).  An answer without markers comes out byte for byte.
 */
void chat_split_feed(struct chat_split *s, struct view piece);
void chat_split_finish(struct chat_split *s); /* what was held back comes out */
unsigned chat_split_n_calls(const struct chat_split *s);
void chat_split_destroy(struct chat_split *s);

/* Nine letters and digits (Mistral's templates demand nine), the same for the same seed and call. */
#define CHAT_CALL_ID_LEN 9
void chat_call_id(uint64_t seed, unsigned call, char ret_id[CHAT_CALL_ID_LEN + 1]);
