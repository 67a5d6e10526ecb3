/* Ids to text: single pieces, whole lists, and streams of whole characters; see tokenizer.h. */
#include <string.h>

#include "common/alloc.h"
#include "common/utf8.h"
#include "daemon/tokenizer/tokenizer_priv.h"

/* Appends text with U+2581 turned back into spaces. */
static void add_unescaped(struct view text, struct str *out)
{
    size_t from = 0;
    ptrdiff_t at;

    while ((at = view_find(text, VIEW("▁"), from)) >= 0) {
        str_add(out, text.p + from, (size_t)at - from);
        str_addc(out, ' ');
        from = (size_t)at + strlen("▁");
    }
    str_add(out, text.p + from, text.len - from);
}

/* Appends the bytes that the characters of a byte-level vocabulary stand for. */
static void add_bytes(struct view text, struct str *out)
{
    for (size_t at = 0; at < text.len;) {
        unsigned cp;
        size_t len = utf8_decode(text.p + at, text.len - at, &cp);
        int byte = len ? bpe_byte_of_char(cp) : -1;

        if (byte >= 0)
            str_addc(out, (char)byte);
        else
            str_add(out, text.p + at, len ? len : 1);
        at += len ? len : 1;
    }
}

void tokenizer_piece(const struct tokenizer *t, int32_t id, bool show_special, struct str *out)
{
    struct view text = tokenizer_text(t, id);
    unsigned attrs = id >= 0 && (size_t)id < t->n_vocab ? t->attrs[id] : ATTR_UNUSED;
    int byte;

    if (attrs & (ATTR_CONTROL | ATTR_UNKNOWN)) {
        if (show_special || (attrs & ATTR_SHOWN))
            str_add(out, text.p, text.len);
    } else if (attrs & ATTR_USER_DEFINED) {
        str_add(out, text.p, text.len);
    } else if (attrs & ATTR_BYTE) {
        byte = vocab_byte_of(text);
        if (byte >= 0)
            str_addc(out, (char)byte);
        else
            add_unescaped(text, out);
    } else if (attrs & ATTR_NORMAL) {
        if (t->kind == KIND_RWKV)
            str_add(out, text.p, text.len);
        else if (t->escape_spaces)
            add_unescaped(text, out);
        else
            add_bytes(text, out);
    }
}

/*
 * The clean-up that many byte-level vocabularies ask for: no space before
 * punctuation, none round a lone apostrophe, none before a contraction, each
 * in a pass of its own over the bytes that the one before has left.
 */
static bool is_punctuation(const char *p, size_t n)
{
    (void)n;
    return p[0] == '?' || p[0] == '!' || p[0] == '.' || p[0] == ',';
}

static bool is_contraction(const char *p, size_t n)
{
    if (p[0] != '\'' || n < 2)
        return false;
    return p[1] == 's' || p[1] == 'm' || (n > 2 && (p[1] == 'r' || p[1] == 'v') && p[2] == 'e');
}

/* Drops each space that stands before something that closes; returns what is left of n. */
static size_t drop_spaces(char *p, size_t n, bool (*closes)(const char *p, size_t n))
{
    size_t kept = 0;
    char before = '\0';

    for (size_t i = 0; i < n; i++) {
        if (before == ' ' && closes(p + i, n - i))
            kept--;
        before = p[i];
        p[kept++] = before;
    }
    return kept;
}

static size_t join_apostrophes(char *p, size_t n)
{
    size_t kept = 0;
    char before = '\0';

    for (size_t i = 0; i < n; i++) {
        bool alone = before == ' ' && p[i] == '\'' && i + 1 < n && p[i + 1] == ' ';

        if (alone)
            kept--;
        before = p[i];
        p[kept++] = before;
        if (alone) {
            before = '\0';
            i++;
        }
    }
    return kept;
}

static void clean_spaces(struct str *s, size_t from)
{
    char *p = s->p + from;
    size_t n = s->len - from;

    n = drop_spaces(p, n, is_punctuation);
    n = join_apostrophes(p, n);
    n = drop_spaces(p, n, is_contraction);
    str_truncate(s, from + n);
}

/* No piece is longer than the text of its token, and what is not shown is nothing. */
size_t tokenizer_decode_bytes(const struct tokenizer *t, const int32_t *ids, size_t n,
                              bool show_special)
{
    size_t bytes = 1;

    for (size_t i = 0; i < n; i++) {
        bool known = ids[i] >= 0 && (size_t)ids[i] < t->n_vocab;
        unsigned attrs = known ? t->attrs[ids[i]] : ATTR_UNUSED;

        if (show_special || (attrs & ATTR_SHOWN) || !(attrs & (ATTR_CONTROL | ATTR_UNKNOWN)))
            bytes += tokenizer_text(t, ids[i]).len;
    }
    return bytes;
}

static void make_room(struct str *s, size_t bytes)
{
    if (s->cap - s->len >= bytes)
        return;
    s->cap = s->len + bytes;
    s->p = xrealloc(s->p, s->cap);
    s->p[s->len] = '\0';
}

void tokenizer_decode(const struct tokenizer *t, const int32_t *ids, size_t n, bool remove_special,
                      bool show_special, struct str *out)
{
    bool drop_prefix = t->add_space_prefix;
    size_t start = out->len;

    if (remove_special && t->add_bos && n && ids[0] == t->bos) {
        drop_prefix = false;
        ids++;
        n--;
    }
    if (remove_special && t->add_eos && n && ids[n - 1] == t->eos)
        n--;
    make_room(out, tokenizer_decode_bytes(t, ids, n, show_special));
    for (size_t i = 0; i < n; i++) {
        tokenizer_piece(t, ids[i], show_special, out);
        if (i == 0 && drop_prefix && out->len > start && out->p[start] == ' ') {
            memmove(out->p + start, out->p + start + 1, out->len - start - 1);
            str_truncate(out, out->len - 1);
        }
    }
    if (t->clean_spaces && out->len > start)
        clean_spaces(out, start);
}

void detok_init(struct detok *d, const struct tokenizer *t)
{
    *d = (struct detok){.tokenizer = t};
}

void detok_clear(struct detok *d)
{
    str_clear(&d->held);
}

static bool shows(const struct detok *d, int32_t id)
{
    const struct tokenizer *t = d->tokenizer;

    return d->shows && id >= 0 && (size_t)id < t->n_vocab && (t->attrs[id] & ATTR_CONTROL) &&
           d->shows(d->shows_arg, tokenizer_text(t, id));
}

void detok_feed(struct detok *d, int32_t id, struct str *out)
{
    size_t tail;

    tokenizer_piece(d->tokenizer, id, shows(d, id), &d->held);
    if (!d->held.len)
        return;
    tail = utf8_incomplete_tail(d->held.p, d->held.len);
    str_add(out, d->held.p, d->held.len - tail);
    str_remove_front(&d->held, d->held.len - tail);
}

void detok_finish(struct detok *d, struct str *out)
{
    str_add(out, str_text(&d->held), d->held.len);
    str_truncate(&d->held, 0);
}
