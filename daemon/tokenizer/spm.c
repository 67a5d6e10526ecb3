/* SentencePiece's byte-pair encoding by score, with bytes for what has no token; see tokenizer_priv.h. */
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "daemon/tokenizer/merge.h"
#include "daemon/tokenizer/tokenizer_priv.h"

#define SPACE "▁"

/* Does a space stand in text after something that is none? */
static bool goes_on_after_a_word(struct view text)
{
    bool word = false;

    for (size_t i = 0; i < text.len;) {
        bool space = text.len - i >= strlen(SPACE) && !memcmp(text.p + i, SPACE, strlen(SPACE));

        if (space && word)
            return true;
        word = word || !space;
        i += space ? strlen(SPACE) : 1;
    }
    return false;
}

/*
 * Where every token is spaces, or spaces and then a word, nothing is ever
 * joined across the end of a word: words can then be joined one by one, which
 * keeps the heap small.
 */
void spm_read(struct tokenizer *t)
{
    t->words_apart = true;
    for (size_t i = 0; i < t->n_vocab && t->words_apart; i++)
        t->words_apart = !goes_on_after_a_word(texts_at(&t->texts, i));
}

struct joining {
    const struct tokenizer *t;
    const char *text;
};

/* Scores as integers of the same order, turned round: the highest comes first. */
static uint32_t order_of_score(float score)
{
    uint32_t bits;

    if (score == 0)
        score = 0; /* -0 and 0 are equal */
    memcpy(&bits, &score, sizeof bits);
    return bits & 0x80000000u ? bits : 0x7fffffffu - bits;
}

static bool join(const void *arg, const struct symbol *left, const struct symbol *right,
                 uint32_t *ret_order, int32_t *ret_id)
{
    const struct joining *j = arg;
    size_t len = (size_t)left->len + right->len;
    int32_t id;

    if (len > j->t->max_token_len)
        return false;
    id = tokenizer_find(j->t, (struct view){j->text + left->at, len});
    if (id < 0)
        return false;
    *ret_order = order_of_score(j->t->scores[id]);
    *ret_id = id;
    return true;
}

/* Bytes that the lead byte announces, cut to what is there; a stray byte is one. */
static uint32_t char_len(const char *p, size_t left)
{
    unsigned char c = (unsigned char)*p;
    size_t len = c < 0xc0 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;

    return (uint32_t)MIN(len, left);
}

static void escape_spaces(struct view text, bool prefix, struct str *out)
{
    size_t from = 0;

    if (prefix)
        str_adds(out, SPACE);
    for (size_t i = 0; i < text.len; i++) {
        if (text.p[i] != ' ')
            continue;
        str_add(out, text.p + from, i - from);
        str_adds(out, SPACE);
        from = i + 1;
    }
    str_add(out, text.p + from, text.len - from);
}

static int emit(const struct tokenizer *t, const char *text, const struct symbol *s,
                struct token_list *out, struct err *err)
{
    int32_t id = s->id >= 0 ? s->id : tokenizer_find(t, (struct view){text + s->at, s->len});

    if (id >= 0) {
        token_list_add(out, id);
        return 0;
    }
    for (uint32_t i = 0; i < s->len; i++) {
        unsigned char byte = (unsigned char)text[s->at + i];

        id = t->byte_token[byte] >= 0 ? t->byte_token[byte] : t->unk;
        if (id < 0)
            return err_set(err, ERR_UNPROCESSABLE,
                           "the vocabulary has no token for the byte 0x%02x and no unknown token",
                           byte);
        token_list_add(out, id);
    }
    return 0;
}

/* Adds the symbols from byte at on, up to the end of the word there when words are joined one by one. */
static size_t add_symbols(const struct joining *j, struct view text, size_t at, struct merge *m)
{
    bool word = false;

    while (at < text.len) {
        uint32_t len = char_len(text.p + at, text.len - at);
        bool space = len == strlen(SPACE) && !memcmp(text.p + at, SPACE, len);

        if (space && word && j->t->words_apart)
            break;
        word = !space;
        merge_add(m, (uint32_t)at, len, -1);
        at += len;
    }
    return at;
}

int spm_encode(const struct tokenizer *t, struct view text, bool after_special,
               struct token_list *out, struct err *err)
{
    struct str escaped = {0};
    struct merge m = {0};
    struct joining j = {.t = t};
    int r = 0;

    escape_spaces(text, t->add_space_prefix && after_special, &escaped);
    j.text = str_text(&escaped);
    for (size_t at = 0; at < escaped.len && r == 0;) {
        merge_start(&m);
        at = add_symbols(&j, view_of_str(&escaped), at, &m);
        merge_run(&m, join, &j);
        for (size_t i = 0; i < m.n && r == 0; i++)
            if (m.symbols[i].len)
                r = emit(t, j.text, &m.symbols[i], out, err);
    }
    merge_clear(&m);
    str_clear(&escaped);
    return r;
}
