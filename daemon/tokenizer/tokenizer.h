/*
 * tokenizer - text to ids and back, as the file says.
 *
 * Special tokens are matched only inside parts that the caller marks as
 * trusted: text that came from a user never becomes a control token.
 *
 * A tokenizer is immutable after it is made: any thread may use it; scratch
 * lives in the call.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/str.h"
#include "daemon/gguf/gguf.h"

struct tokenizer;

enum token_type {
    TOKEN_NORMAL = 1,
    TOKEN_UNKNOWN,
    TOKEN_CONTROL,
    TOKEN_USER_DEFINED,
    TOKEN_UNUSED,
    TOKEN_BYTE
};

/*
 * Reads vocabulary, merges, types and flags.  A file without a vocabulary
 * (tokenizer.ggml.model "none") gives *ret = NULL and returns 0.
 */
int tokenizer_create(const struct gguf *g, struct tokenizer **ret, struct err *err);
/* The same with tokenizer.ggml.pre replaced (tests); pre may be NULL. */
int tokenizer_create_pre(const struct gguf *g, const char *pre, struct tokenizer **ret,
                         struct err *err);
/* The same, and room is asked before anything that grows with the vocabulary is made; NULL: nobody is. */
int tokenizer_create_within(const struct gguf *g, const struct gguf_room *room,
                            struct tokenizer **ret, struct err *err);
void tokenizer_destroy(struct tokenizer *t);

size_t tokenizer_memory_bytes(const struct tokenizer *t); /* what it holds, for the ledger */
size_t tokenizer_n_vocab(const struct tokenizer *t);

/* Ids of the special tokens, −1 where the file names none. */
int32_t tokenizer_bos(const struct tokenizer *t);
int32_t tokenizer_eos(const struct tokenizer *t);
bool tokenizer_add_bos(const struct tokenizer *t);
bool tokenizer_add_eos(const struct tokenizer *t);
/* Does this id end a generation (eos, eot, eom and the known end-of-turn names)? */
bool tokenizer_is_eog(const struct tokenizer *t, int32_t id);
enum token_type tokenizer_type(const struct tokenizer *t, int32_t id);
struct view tokenizer_text(const struct tokenizer *t, int32_t id); /* as in the file */
/* The id whose text is exactly this, or −1. */
int32_t tokenizer_find(const struct tokenizer *t, struct view text);

struct token_list {
    int32_t *ids;
    size_t n;
    size_t cap;
};
void token_list_clear(struct token_list *l);

/* Parts of the text; special tokens are matched only where trusted. */
struct token_span {
    size_t from, to;
    bool trusted;
};

/*
 * Appends the ids of text.  add_special: bos/eos (cls/sep) as the file says.
 * parse_special: the whole text is trusted.
 */
int tokenizer_encode(const struct tokenizer *t, struct view text, bool add_special,
                     bool parse_special, struct token_list *out, struct err *err);
/* Spans cover the text in order without gaps; special tokens never span two. */
int tokenizer_encode_spans(const struct tokenizer *t, struct view text,
                           const struct token_span *spans, size_t n_spans, bool add_special,
                           struct token_list *out, struct err *err);

/*
 * Whom an encoding asks before it takes memory that grows with the text, and whom it tells now and
 * then that it goes on: a text of megabytes takes seconds.  Less than 0 from either ends it, with
 * that error.  When it returns, what was asked for and not given back is what out->ids holds, also
 * after an error; out is empty before.
 */
struct token_room {
    int (*reserve)(void *arg, size_t bytes, struct err *err);
    void (*release)(void *arg, size_t bytes);
    int (*tick)(void *arg, struct err *err); /* NULL: nobody is told */
    void *arg;
};

/* room: NULL: nobody is asked. */
int tokenizer_encode_within(const struct tokenizer *t, struct view text,
                            const struct token_span *spans, size_t n_spans, bool add_special,
                            const struct token_room *room, struct token_list *out, struct err *err);
/*
 * How many ids a text of so many bytes has at least, told without a look at it; 0 where the
 * vocabulary leaves parts of a text out, or makes one token of any number of them.
 */
size_t tokenizer_least_ids(const struct tokenizer *t, size_t bytes);

/* Appends the bytes of one token in the middle of a text; control tokens are nothing unless show_special. */
void tokenizer_piece(const struct tokenizer *t, int32_t id, bool show_special, struct str *out);
/*
 * Whole list; remove_special drops the bos/eos that add_special had put. Handles the first-space rule.
 * out grows once, by no more than tokenizer_decode_bytes().
 */
void tokenizer_decode(const struct tokenizer *t, const int32_t *ids, size_t n, bool remove_special,
                      bool show_special, struct str *out);
size_t tokenizer_decode_bytes(const struct tokenizer *t, const int32_t *ids, size_t n,
                              bool show_special);

/*
 * A stream of ids to whole UTF-8: holds back incomplete sequences (they come
 * out as they are at the end).  It continues a text: a first space stays.
 */
struct detok {
    const struct tokenizer *tokenizer;
    struct str held;
    /* Which control tokens come out; NULL: none. */
    bool (*shows)(const void *arg, struct view text);
    const void *shows_arg;
};
void detok_init(struct detok *d, const struct tokenizer *t);
void detok_clear(struct detok *d);
void detok_feed(struct detok *d, int32_t id, struct str *out);
void detok_finish(struct detok *d, struct str *out);
