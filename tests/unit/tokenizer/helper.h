/*
 * helper - small vocabularies, and checks by ids written as text.
 *
 * Ids are compared as "5 6 7", so that a failed test says both lists.
 */
#pragma once

#include "daemon/tokenizer/tokenizer.h"
#include "tests/support/gguf_writer.h"

struct token {
    const char *text;
    float score;
    int type; /* enum token_type; 0: TOKEN_NORMAL */
};

/* The keys of a vocabulary; scores and types of all. */
void write_tokens(struct gguf_writer *w, const char *model, const struct token *tokens, size_t n);

/*
 * A byte-level vocabulary: ids 0–255 are the bytes, then the n further tokens.
 * Each merge is "left right" in GPT-2's alphabet (a space is "Ġ").
 */
void write_bpe(struct gguf_writer *w, const char *pre, const struct token *more, size_t n,
               const char *const *merges, size_t n_merges);

/*
 * A SentencePiece vocabulary: 0 <unk>, 1 <s>, 2 </s>, 3–258 the bytes
 * (<0x00> is 3), then the n further tokens from 259 on.
 */
void write_spm(struct gguf_writer *w, const struct token *more, size_t n);

/* Both take the writer: it is empty after the call. */
struct tokenizer *make_tokenizer(struct gguf_writer *take_w);
void expect_no_tokenizer(struct gguf_writer *take_w, enum err_kind kind, const char *part);

void expect_ids(const struct tokenizer *t, struct view text, bool add_special, bool parse_special,
                const char *want);
void expect_text(const struct tokenizer *t, const char *ids, bool remove_special, bool show_special,
                 const char *want);
/* "5 6 7" to ids; a new array. */
int32_t *parse_ids(const char *text, size_t *ret_n);
/* n times text; a new string. */
char *repeat(const char *text, size_t n);
