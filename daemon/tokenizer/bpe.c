/* Byte-pair encoding by the ranks of a list of merges; see tokenizer_priv.h. */
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/hash.h"
#include "common/utf8.h"
#include "daemon/tokenizer/merge.h"
#include "daemon/tokenizer/tokenizer_priv.h"

#define KEY_MERGES "tokenizer.ggml.merges"
#define EMPTY_SLOT UINT32_MAX

/*
 * GPT-2's alphabet: printable Latin-1 stands for itself, the other 68 bytes
 * are the characters from U+0100 on, in order.
 */
static bool stands_for_itself(unsigned byte)
{
    return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

unsigned bpe_char_of_byte(unsigned byte)
{
    unsigned before = byte <= 0x20 ? byte : byte <= 0xa0 ? 33 + byte - 0x7f : 67;

    return stands_for_itself(byte) ? byte : 0x100 + before;
}

int bpe_byte_of_char(unsigned cp)
{
    if (cp < 0x100)
        return stands_for_itself(cp) ? (int)cp : -1;
    if (cp <= 0x120)
        return (int)(cp - 0x100);
    if (cp <= 0x142)
        return (int)(cp - 0x121 + 0x7f);
    return cp == 0x143 ? 0xad : -1;
}

static size_t merge_slot(const struct tokenizer *t, uint32_t left, uint32_t right)
{
    const uint32_t pair[2] = {left, right};
    size_t mask = t->n_merge_slots - 1;
    size_t i = hash_bytes_seed(pair, sizeof pair, t->texts.seed) & mask;

    while (t->merges[i].left != EMPTY_SLOT &&
           (t->merges[i].left != left || t->merges[i].right != right))
        i = (i + 1) & mask;
    return i;
}

/* The id of a string that occurs in a merge: a token's, or a new one above them. */
static int intern(struct tokenizer *t, struct view text, uint32_t *ret, struct err *err)
{
    int32_t id = texts_find(&t->texts, text);
    size_t more = id < 0 && t->room ? texts_bytes_to_add(&t->texts, text.len) : 0;
    int r = more ? t->room->reserve(t->room->arg, more, err) : 0;

    if (r < 0)
        return r;
    if (id < 0)
        texts_add(&t->texts, text);
    *ret = id < 0 ? (uint32_t)t->texts.n - 1 : (uint32_t)id;
    return 0;
}

static int add_merge(struct tokenizer *t, struct view line, uint32_t rank, struct str *scratch,
                     struct err *err)
{
    /* A part may itself be a space, so the cut is at the second byte or later. */
    ptrdiff_t cut = line.len > 1 ? view_find(line, VIEW(" "), 1) : -1;
    struct bpe_merge m = {.rank = rank};
    size_t slot;
    int r;

    if (cut < 0 || (size_t)cut + 1 == line.len)
        return 0;
    if ((r = intern(t, view_sub(line, 0, (size_t)cut), &m.left, err)) < 0 ||
        (r = intern(t, view_sub(line, (size_t)cut + 1, line.len), &m.right, err)) < 0)
        return r;
    slot = merge_slot(t, m.left, m.right);
    if (t->merges[slot].left != EMPTY_SLOT)
        return 0;
    str_truncate(scratch, 0);
    str_add(scratch, line.p, (size_t)cut);
    str_add(scratch, line.p + cut + 1, line.len - (size_t)cut - 1);
    r = intern(t, view_of_str(scratch), &m.whole, err);
    if (r >= 0)
        t->merges[slot] = m;
    return r;
}

static void find_byte_symbols(struct tokenizer *t)
{
    for (unsigned b = 0; b < 256; b++) {
        char text[4];
        size_t n = utf8_encode(bpe_char_of_byte(b), text);

        t->byte_symbol[b] = texts_find(&t->texts, (struct view){text, n});
    }
}

static size_t merge_slots_for(size_t n)
{
    size_t slots = 16;

    while (slots / 4 * 3 < n)
        slots *= 2;
    return slots;
}

size_t bpe_merges_bytes(size_t n)
{
    return merge_slots_for(n) * sizeof(struct bpe_merge);
}

int bpe_read(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    const struct gguf_value *merges = gguf_find(g, KEY_MERGES);
    struct str scratch = {0};
    int r = 0;

    if (!merges)
        return err_set_param(err, ERR_FORMAT, KEY_MERGES,
                             "the tokenizer has no merges (" KEY_MERGES
                             "); convert the model again");
    if (merges->type != GGUF_ARRAY || merges->elem_type != GGUF_STRING)
        return err_set_param(err, ERR_FORMAT, KEY_MERGES,
                             "metadata key '" KEY_MERGES "' is not an array of strings");
    t->n_merge_slots = merge_slots_for(merges->n);
    t->merges = xreallocarray(NULL, t->n_merge_slots, sizeof *t->merges);
    for (size_t i = 0; i < t->n_merge_slots; i++)
        t->merges[i] = (struct bpe_merge){.left = EMPTY_SLOT};
    for (size_t i = 0; i < merges->n && r >= 0; i++)
        r = add_merge(t, merges->strings[i], (uint32_t)i, &scratch, err);
    str_clear(&scratch);
    if (r < 0)
        return r;
    find_byte_symbols(t);
    texts_shrink(&t->texts);
    return 0;
}

static bool join(const void *arg, const struct symbol *left, const struct symbol *right,
                 uint32_t *ret_order, int32_t *ret_id)
{
    const struct tokenizer *t = arg;
    const struct bpe_merge *m;

    if (left->id < 0 || right->id < 0)
        return false;
    m = &t->merges[merge_slot(t, (uint32_t)left->id, (uint32_t)right->id)];
    if (m->left == EMPTY_SLOT)
        return false;
    *ret_order = m->rank;
    *ret_id = (int32_t)m->whole;
    return true;
}

/* What goes from word to word: the symbols, and a word in the characters of the vocabulary. */
struct words {
    const struct tokenizer *t;
    struct work *work;
    struct merge merge;
    struct str text;
};

/* The token that is the whole word, or -1. */
static int32_t whole_word(struct words *w, struct view word)
{
    /* A byte's character has two bytes at most. */
    if (word.len > w->t->max_token_len)
        return -1;
    if (w->t->pre->flags & PRE_RAW)
        return tokenizer_find(w->t, word);
    str_truncate(&w->text, 0);
    if (work_text(w->work, &w->text, 2 * word.len) < 0)
        return -1;
    for (size_t i = 0; i < word.len; i++)
        str_add_utf8(&w->text, bpe_char_of_byte((unsigned char)word.p[i]));
    return tokenizer_find(w->t, view_of_str(&w->text));
}

static bool is_newlines(struct view word)
{
    for (size_t i = 0; i < word.len; i++)
        if (word.p[i] != '\n')
            return false;
    return true;
}

static void add_symbols(const struct tokenizer *t, struct view word, struct merge *m)
{
    for (size_t at = 0; at < word.len;) {
        unsigned cp;
        size_t len = 1;
        int32_t id;

        if (t->pre->flags & PRE_RAW) {
            len = MAX(utf8_decode(word.p + at, word.len - at, &cp), (size_t)1);
            id = texts_find(&t->texts, view_sub(word, at, len));
        } else {
            id = t->byte_symbol[(unsigned char)word.p[at]];
        }
        merge_add(m, (uint32_t)at, (uint32_t)len, id);
        at += len;
    }
}

/* A byte without a token of its own is left out: a byte-level vocabulary that lacks bytes means that. */
static void emit(const struct tokenizer *t, struct view word, const struct symbol *s,
                 struct work *w)
{
    const int32_t *token_of = t->pre->flags & PRE_RAW ? t->byte_token : t->byte_symbol;

    if (s->id >= 0 && (size_t)s->id < t->n_vocab) {
        work_add(w, s->id);
        return;
    }
    for (uint32_t i = 0; i < s->len; i++) {
        int32_t id = token_of[(unsigned char)word.p[s->at + i]];

        if (id >= 0 && (size_t)id < t->n_vocab)
            work_add(w, id);
    }
}

bool bpe_has_all_bytes(const struct tokenizer *t)
{
    const int32_t *token_of = t->pre->flags & PRE_RAW ? t->byte_token : t->byte_symbol;

    for (unsigned b = 0; b < 256; b++)
        if (token_of[b] < 0 || (size_t)token_of[b] >= t->n_vocab)
            return false;
    return true;
}

static void encode_word(struct words *w, struct view word)
{
    const struct tokenizer *t = w->t;
    struct merge *m = &w->merge;
    bool whole = t->ignore_merges || ((t->pre->flags & PRE_NEWLINES_WHOLE) && is_newlines(word));
    int32_t id = whole ? whole_word(w, word) : -1;

    if (id >= 0) {
        work_add(w->work, id);
        return;
    }
    if (merge_start(m, word.len) < 0)
        return;
    add_symbols(t, word, m);
    if (merge_run(m, join, t) < 0)
        return;
    for (size_t i = 0; i < m->n; i++)
        if (m->symbols[i].len)
            emit(t, word, &m->symbols[i], w->work);
}

/* Adds one character of text as the splitters see it, or counts its bytes; returns its length in text. */
static size_t prepare_char(struct view text, bool escape, struct str *own, size_t *count)
{
    unsigned cp;
    size_t len = utf8_decode(text.p, text.len, &cp);
    struct view as = len ? view_sub(text, 0, len) : VIEW("\xef\xbf\xbd");

    if (escape && text.p[0] == ' ')
        as = VIEW("▁");
    *count += as.len;
    if (own)
        str_add(own, as.p, as.len);
    return MAX(len, (size_t)1);
}

/* What the splitters see: valid UTF-8 (each wrong byte is U+FFFD), spaces as the vocabulary writes them. */
static struct view prepare(const struct tokenizer *t, struct view text, struct work *w,
                           struct str *own)
{
    bool escape = t->escape_spaces && memchr(text.p, ' ', text.len);
    size_t n = 0;

    if (!escape && utf8_valid(text.p, text.len))
        return text;
    for (size_t at = 0; at < text.len;)
        at += prepare_char(view_sub(text, at, text.len), escape, NULL, &n);
    if (work_text(w, own, n) < 0)
        return VIEW("");
    for (size_t at = 0; at < text.len;)
        at += prepare_char(view_sub(text, at, text.len), escape, own, &n);
    return view_of_str(own);
}

void bpe_encode(const struct tokenizer *t, struct view text, struct work *w)
{
    struct words words = {.t = t, .work = w, .merge = {.work = w}};
    struct word_ends ends = {0};
    struct str own = {0};
    struct view prepared = prepare(t, text, w, &own);
    size_t from = 0;
    int r = pretoken_split(t->pretoken, prepared, w, &ends);

    for (size_t i = 0; r == 0 && i < ends.n; i++) {
        encode_word(&words, view_sub(prepared, from, ends.ends[i] - from));
        from = ends.ends[i];
        r = work_step(w);
    }
    work_free(w, ends.ends, ends.cap, sizeof *ends.ends);
    merge_clear(&words.merge);
    work_text_free(w, &words.text);
    work_text_free(w, &own);
}
