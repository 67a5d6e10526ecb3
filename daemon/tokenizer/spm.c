/* SentencePiece's byte-pair encoding by score, with bytes for what has no token; see tokenizer_priv.h. */
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

static void escape_spaces(struct view text, bool prefix, struct work *w, struct str *out)
{
    size_t from = 0, spaces = prefix;

    for (size_t i = 0; i < text.len; i++)
        spaces += text.p[i] == ' ';
    if (work_text(w, out, text.len + spaces * strlen(SPACE)) < 0)
        return;
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

static void emit(const struct tokenizer *t, const char *text, const struct symbol *s,
                 struct work *w)
{
    int32_t id = s->id >= 0 ? s->id : tokenizer_find(t, (struct view){text + s->at, s->len});

    if (id >= 0) {
        work_add(w, id);
        return;
    }
    for (uint32_t i = 0; i < s->len && !w->failed; i++) {
        unsigned char byte = (unsigned char)text[s->at + i];

        id = t->byte_token[byte] >= 0 ? t->byte_token[byte] : t->unk;
        if (id >= 0)
            work_add(w, id);
        else
            w->failed = err_set(w->err, ERR_UNPROCESSABLE,
                                "the vocabulary has no token for the byte 0x%02x and no unknown "
                                "token",
                                byte);
    }
}

/*
 * The end of what is joined from byte at on: of the word there when words are joined one by one.
 * *ret_n: how many symbols it has.
 */
static size_t find_end(const struct tokenizer *t, struct view text, size_t at, size_t *ret_n)
{
    bool word = false;

    for (*ret_n = 0; at < text.len; ++*ret_n) {
        uint32_t len = char_len(text.p + at, text.len - at);
        bool space = len == strlen(SPACE) && !memcmp(text.p + at, SPACE, len);

        if (space && word && t->words_apart)
            break;
        word = !space;
        at += len;
    }
    return at;
}

/* Joins text[from, to), which has n symbols. */
static void join_part(const struct joining *j, size_t from, size_t to, size_t n, struct merge *m)
{
    if (merge_start(m, n) < 0)
        return;
    while (from < to) {
        uint32_t len = char_len(j->text + from, to - from);

        merge_add(m, (uint32_t)from, len, -1);
        from += len;
    }
    if (merge_run(m, join, j) < 0)
        return;
    for (size_t i = 0; i < m->n; i++)
        if (m->symbols[i].len)
            emit(j->t, j->text, &m->symbols[i], m->work);
}

void spm_encode(const struct tokenizer *t, struct view text, bool after_special, struct work *w)
{
    struct str escaped = {0};
    struct merge m = {.work = w};
    struct joining j = {.t = t};

    escape_spaces(text, t->add_space_prefix && after_special, w, &escaped);
    j.text = str_text(&escaped);
    for (size_t at = 0; at < escaped.len && !w->failed;) {
        size_t n, to = find_end(t, view_of_str(&escaped), at, &n);

        join_part(&j, at, to, n, &m);
        at = to;
    }
    merge_clear(&m);
    work_text_free(w, &escaped);
}
