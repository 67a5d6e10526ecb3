/* BERT's WordPiece: words of a normalised text, each cut greedily into its longest tokens. */
#include <string.h>
#include <utf8proc.h>

#include "common/alloc.h"
#include "common/utf8.h"
#include "daemon/tokenizer/tokenizer_priv.h"

#define KEY(name) "tokenizer.ggml.normalizer." name

int wpm_read(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    int r;

    t->lowercase = true;
    r = gguf_get_bool(g, KEY("lowercase"), &t->lowercase, err);
    if (r < 0)
        return r;
    t->strip_accents = t->lowercase;
    r = gguf_get_bool(g, KEY("strip_accents"), &t->strip_accents, err);
    if (r < 0)
        return r;
    if (t->unk < 0)
        return err_set_param(
            err, ERR_FORMAT, "tokenizer.ggml.unknown_token_id",
            "the tokenizer has no unknown token (tokenizer.ggml.unknown_token_id)");
    return 0;
}

static bool is_white(unsigned cp)
{
    return (cp >= '\t' && cp <= '\r') || cp == ' ' || cp == 0x85 || cp == 0xa0 || cp == 0x1680 ||
           (cp >= 0x2000 && cp <= 0x200a) || cp == 0x2028 || cp == 0x2029 || cp == 0x202f ||
           cp == 0x205f || cp == 0x3000;
}

/* Each is a word.  The gap before U+2B920 is in the original. */
static bool is_ideograph(unsigned cp)
{
    return (cp >= 0x4e00 && cp <= 0x9fff) || (cp >= 0x3400 && cp <= 0x4dbf) ||
           (cp >= 0x20000 && cp <= 0x2a6df) || (cp >= 0x2a700 && cp <= 0x2b81f) ||
           (cp >= 0x2b920 && cp <= 0x2ceaf) || (cp >= 0xf900 && cp <= 0xfaff) ||
           (cp >= 0x2f800 && cp <= 0x2fa1f);
}

static bool is_mark(utf8proc_category_t c)
{
    return c == UTF8PROC_CATEGORY_MN || c == UTF8PROC_CATEGORY_MC || c == UTF8PROC_CATEGORY_ME;
}

static bool is_control(utf8proc_category_t c)
{
    return c == UTF8PROC_CATEGORY_CC || c == UTF8PROC_CATEGORY_CF || c == UTF8PROC_CATEGORY_CO ||
           c == UTF8PROC_CATEGORY_CS;
}

/* Punctuation, and the ASCII symbols with it, is a word of one character. */
static bool stands_alone(unsigned cp, utf8proc_category_t c)
{
    bool symbol = c >= UTF8PROC_CATEGORY_SM && c <= UTF8PROC_CATEGORY_SO;

    return (c >= UTF8PROC_CATEGORY_PC && c <= UTF8PROC_CATEGORY_PO) || (cp < 0x7f && symbol) ||
           is_ideograph(cp);
}

/* The character without its accents: the first of its canonical decomposition. */
static unsigned base_of(unsigned cp)
{
    utf8proc_int32_t parts[32];
    int boundclass = 0;
    utf8proc_ssize_t n = utf8proc_decompose_char((utf8proc_int32_t)cp, parts, ARRAY_LEN(parts),
                                                 UTF8PROC_DECOMPOSE | UTF8PROC_STABLE, &boundclass);

    return n > 0 ? (unsigned)parts[0] : cp;
}

static void emit_word(const struct tokenizer *t, struct str *word, struct work *w)
{
    size_t before = w->out->n;

    if (word->len <= strlen("▁"))
        return;
    for (size_t at = 0; at < word->len;) {
        size_t len = MIN(word->len - at, t->max_token_len);
        int32_t id = -1;

        for (; len; len--) {
            id = tokenizer_find(t, (struct view){word->p + at, len});
            if (id >= 0)
                break;
        }
        if (id < 0) {
            /* A word with a part that is no token is unknown as a whole. */
            w->out->n = before;
            work_add(w, t->unk);
            break;
        }
        work_add(w, id);
        at += len;
    }
    str_truncate(word, strlen("▁"));
}

static void add_char(const struct tokenizer *t, unsigned cp, struct str *word, struct work *w)
{
    utf8proc_category_t c;

    if (t->strip_accents)
        cp = base_of(cp);
    c = utf8proc_category((utf8proc_int32_t)cp);
    if (is_white(cp)) {
        emit_word(t, word, w);
        return;
    }
    if (cp == 0 || cp == UTF8_REPLACEMENT || is_control(c) || (t->strip_accents && is_mark(c)))
        return;
    if (!stands_alone(cp, c)) {
        str_add_utf8(word, t->lowercase ? (unsigned)utf8proc_tolower((utf8proc_int32_t)cp) : cp);
        return;
    }
    emit_word(t, word, w);
    str_add_utf8(word, t->lowercase ? (unsigned)utf8proc_tolower((utf8proc_int32_t)cp) : cp);
    emit_word(t, word, w);
}

void wpm_encode(const struct tokenizer *t, struct view text, struct work *w)
{
    struct str word = {0}; /* always begins with the mark of a word's start */

    if (work_text(w, &word, strlen("▁")) == 0)
        str_adds(&word, "▁");
    /* Of a character there come four bytes at most. */
    for (size_t at = 0; at < text.len && work_text(w, &word, 4) == 0 && work_step(w) == 0;) {
        unsigned cp;
        size_t len = utf8_decode(text.p + at, text.len - at, &cp);

        add_char(t, cp, &word, w);
        at += MAX(len, (size_t)1);
    }
    if (!w->failed)
        emit_word(t, &word, w);
    work_text_free(w, &word);
}
