/* Makes a tokenizer, and encodes by it; see tokenizer.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "daemon/tokenizer/tokenizer_priv.h"

void token_list_clear(struct token_list *l)
{
    free(l->ids);
    *l = (struct token_list){0};
}

/* How much of a name from the file a message can carry: it may be anything. */
static int printable(struct view v)
{
    size_t n = 0;

    while (n < v.len && n < 100 && v.p[n] >= ' ' && v.p[n] < 0x7f)
        n++;
    return (int)n;
}

static int set_pre(struct tokenizer *t, struct view name, struct err *err)
{
    t->pre = pretoken_find(name);
    if (!t->pre)
        return err_set_param(err, ERR_UNSUPPORTED, "tokenizer.ggml.pre",
                             "rnbd does not know how the tokenizer '%.*s' cuts words "
                             "(tokenizer.ggml.pre)",
                             printable(name), name.p);
    t->ignore_merges = t->pre->flags & PRE_IGNORE_MERGES;
    t->add_bos = t->pre->flags & PRE_ADD_BOS;
    t->escape_spaces = t->pre->flags & PRE_ESCAPE_SPACES;
    t->clean_spaces = !(t->pre->flags & PRE_KEEP_SPACES);
    return pretoken_create(t->pre, &t->pretoken, err);
}

/* What the kind of a tokenizer implies until the file says otherwise. */
static int set_kind(struct tokenizer *t, struct view model, struct view pre, struct err *err)
{
    if (view_is(model, "gpt2") || view_is(model, "gemma4")) {
        t->kind = KIND_BPE;
        return set_pre(t, view_is(model, "gemma4") ? VIEW("gemma4") : pre, err);
    }
    if (view_is(model, "rwkv")) {
        t->kind = KIND_RWKV;
        return 0;
    }
    t->escape_spaces = true;
    if (view_is(model, "llama")) {
        t->kind = KIND_SPM;
        t->bos = 1;
        t->eos = 2;
        t->unk = 0;
        t->add_bos = true;
        t->add_space_prefix = true;
    } else if (view_is(model, "bert")) {
        t->kind = KIND_WPM;
        t->bos = 101;
        t->sep = 102;
        t->unk = 100;
        t->add_bos = true;
        t->clean_spaces = true;
    } else if (view_is(model, "t5")) {
        t->kind = KIND_UGM;
        t->eos = 1;
        t->unk = 2;
        t->add_eos = true;
    } else {
        return err_set_param(err, ERR_UNSUPPORTED, "tokenizer.ggml.model",
                             "rnbd does not know the tokenizer model '%.*s' (tokenizer.ggml.model)",
                             printable(model), model.p);
    }
    return 0;
}

/* The ids that a kind implies mean nothing in a vocabulary that is smaller. */
static void drop_ids_beyond(struct tokenizer *t)
{
    int32_t *const ids[] = {&t->bos, &t->eos, &t->unk, &t->sep};

    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        if (*ids[i] >= 0 && (size_t)*ids[i] >= t->n_vocab)
            *ids[i] = -1;
}

static int read_all(struct tokenizer *t, const struct gguf *g, struct view model, struct view pre,
                    struct err *err)
{
    char pre_text[64];
    int r;

    if ((r = set_kind(t, model, pre, err)) < 0 || (r = vocab_read(t, g, err)) < 0)
        return r;
    drop_ids_beyond(t);
    if ((t->kind == KIND_SPM || t->kind == KIND_UGM) && !t->scores)
        return err_set_param(err, ERR_FORMAT, "tokenizer.ggml.scores",
                             "the tokenizer has no scores (tokenizer.ggml.scores)");
    if (t->kind == KIND_SPM)
        spm_read(t);
    if (t->kind == KIND_BPE && (r = bpe_read(t, g, err)) < 0)
        return r;
    if ((r = vocab_read_specials(t, g, err)) < 0)
        return r;
    if (t->kind == KIND_WPM && (r = wpm_read(t, g, err)) < 0)
        return r;
    if (t->kind == KIND_UGM && (r = ugm_read(t, g, err)) < 0)
        return r;
    if (t->kind == KIND_RWKV && (r = rwkv_read(t, err)) < 0)
        return r;
    snprintf(pre_text, sizeof pre_text, "%.*s", (int)MIN(pre.len, 60), pre.p);
    vocab_set_attributes(t, g, pre_text);
    specials_build(t);
    texts_shrink(&t->texts);
    return 0;
}

static const struct gguf_value *array_of(const struct gguf *g, const char *key)
{
    const struct gguf_value *v = gguf_find(g, key);

    return v && v->type == GGUF_ARRAY ? v : NULL;
}

/* To put any of the strings together: half as much again, and what that grew from while it moves. */
static size_t scratch_bytes(const struct gguf_value *v)
{
    size_t longest = 0;

    for (size_t i = 0; i < v->n; i++)
        longest = MAX(longest, v->strings[i].len);
    return 3 * longest + 64;
}

/* What all tables take while they are made, but for strings of merges that are no tokens (bpe.c). */
static size_t bytes_to_read(const struct gguf *g)
{
    const struct gguf_value *tokens = array_of(g, "tokenizer.ggml.tokens");
    const struct gguf_value *merges = array_of(g, "tokenizer.ggml.merges");
    const struct gguf_value *charsmap = array_of(g, "tokenizer.ggml.precompiled_charsmap");
    size_t bytes = sizeof(struct tokenizer) + PRETOKEN_BYTES, text = 0;

    if (tokens && tokens->strings) {
        for (size_t i = 0; i < tokens->n; i++)
            text += tokens->strings[i].len + 1;
        /* attributes, scores, three lists of ids and what sorts them */
        bytes += texts_bytes_for(tokens->n, text) + scratch_bytes(tokens);
        bytes += (tokens->n + 1) * (sizeof(uint16_t) + sizeof(float) + 4 * sizeof(uint32_t));
    }
    if (merges && merges->strings)
        bytes += bpe_merges_bytes(merges->n) + scratch_bytes(merges);
    return bytes + (charsmap ? charsmap_bytes_for(charsmap->n) : 0);
}

static int create(const struct gguf *g, const char *pre, const struct gguf_room *room,
                  struct tokenizer **ret, struct err *err)
{
    struct tokenizer *t = NULL;
    struct view model, name = VIEW("default");
    int r = gguf_get_string(g, "tokenizer.ggml.model", &model, err);

    if (r < 0)
        return r;
    if (r == 0)
        return err_set_param(err, ERR_FORMAT, "tokenizer.ggml.model",
                             "the file does not say what tokenizer it has (tokenizer.ggml.model)");
    if (view_is(model, "none") || view_is(model, "no_vocab")) {
        *ret = NULL;
        return 0;
    }
    r = gguf_get_string(g, "tokenizer.ggml.pre", &name, err);
    if (r < 0)
        return r;
    r = room ? room->reserve(room->arg, bytes_to_read(g), err) : 0;
    if (r < 0)
        return r;
    t = XNEW(struct tokenizer);
    t->room = room;
    t->bos = t->eos = t->unk = t->sep = -1;
    r = read_all(t, g, model, pre ? view_of(pre) : name, err);
    if (r == 0) {
        t->room = NULL;
        *ret = t;
        t = NULL;
    }
    tokenizer_destroy(t);
    return r;
}

int tokenizer_create_pre(const struct gguf *g, const char *pre, struct tokenizer **ret,
                         struct err *err)
{
    return create(g, pre, NULL, ret, err);
}

int tokenizer_create_within(const struct gguf *g, const struct gguf_room *room,
                            struct tokenizer **ret, struct err *err)
{
    return create(g, NULL, room, ret, err);
}

int tokenizer_create(const struct gguf *g, struct tokenizer **ret, struct err *err)
{
    return create(g, NULL, NULL, ret, err);
}

void tokenizer_destroy(struct tokenizer *t)
{
    if (!t)
        return;
    texts_clear(&t->texts);
    pretoken_destroy(t->pretoken);
    free(t->attrs);
    free(t->scores);
    prefix_clear(&t->specials);
    prefix_clear(&t->words);
    charsmap_destroy(t->charsmap);
    free(t->special_lens);
    free(t->merges);
    free(t);
}

size_t tokenizer_memory_bytes(const struct tokenizer *t)
{
    size_t bytes = sizeof *t + texts_bytes(&t->texts) + t->n_vocab * sizeof *t->attrs;

    if (t->scores)
        bytes += t->n_vocab * sizeof *t->scores;
    if (t->pretoken)
        bytes += pretoken_bytes(t->pretoken);
    if (t->charsmap)
        bytes += charsmap_bytes(t->charsmap);
    if (t->words.ids)
        bytes += (t->words.n + 1) * sizeof *t->words.ids;
    return bytes + t->n_merge_slots * sizeof *t->merges +
           (t->specials.n + 1) * (sizeof *t->specials.ids + sizeof *t->special_lens);
}

static void encode_fragment(const struct tokenizer *t, struct view text, bool after_special,
                            struct work *w)
{
    switch (t->kind) {
    case KIND_SPM: spm_encode(t, text, after_special, w); break;
    case KIND_BPE: bpe_encode(t, text, w); break;
    case KIND_UGM: ugm_encode(t, text, w); break;
    case KIND_RWKV: rwkv_encode(t, text, w); break;
    default: wpm_encode(t, text, w); break;
    }
}

/* A white space that belongs to the special token beside it is in no token's text. */
static bool strips_spaces(const struct tokenizer *t)
{
    for (size_t i = 0; i < t->specials.n; i++)
        if (t->attrs[t->specials.ids[i]] & (ATTR_LSTRIP | ATTR_RSTRIP))
            return true;
    return false;
}

size_t tokenizer_least_ids(const struct tokenizer *t, size_t bytes)
{
    /* WordPiece drops characters, and a unigram model's table and its unknown token shrink a text. */
    bool all = t->kind == KIND_SPM || (t->kind == KIND_BPE && bpe_has_all_bytes(t)) ||
               (t->kind == KIND_RWKV && rwkv_has_all_bytes(t));

    if (!all || !t->max_token_len || strips_spaces(t))
        return 0;
    return bytes / t->max_token_len + (bytes % t->max_token_len > 0);
}

/* The token that add_special puts at the end, or -1. */
static int32_t last_special(const struct tokenizer *t)
{
    if (t->kind == KIND_WPM)
        return t->sep;
    return t->add_eos ? t->eos : -1;
}

/* Spans that miss or share bytes are a fault of the caller, not of its input. */
static bool spans_cover(const struct token_span *spans, size_t n, size_t len)
{
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        if (spans[i].from != at || spans[i].to < at)
            return false;
        at = spans[i].to;
    }
    return at == len;
}

static void encode(const struct tokenizer *t, struct view text, const struct token_span *spans,
                   size_t n_spans, bool add_special, struct work *w)
{
    struct fragments f = {0};
    bool after_special = true; /* the start of the text counts as one */

    if (add_special && t->add_bos)
        work_add(w, t->bos);
    specials_split(t, text, spans, n_spans, w, &f);
    for (size_t i = 0; !w->failed && i < f.n; i++) {
        const struct fragment *part = &f.list[i];

        if (part->id >= 0)
            work_add(w, part->id);
        else
            encode_fragment(t, view_sub(text, part->from, part->to - part->from), after_special, w);
        after_special = part->id >= 0;
        work_step(w);
    }
    if (add_special && last_special(t) >= 0)
        work_add(w, last_special(t));
    work_free(w, f.list, f.cap, sizeof *f.list);
}

int tokenizer_encode_within(const struct tokenizer *t, struct view text,
                            const struct token_span *spans, size_t n_spans, bool add_special,
                            const struct token_room *room, struct token_list *out, struct err *err)
{
    struct work w = {.room = room, .out = out, .err = err};

    if (text.len > TOKENIZER_TEXT_MAX)
        return err_set(err, ERR_TOO_LARGE, "a text of %zu bytes is too long to be tokenized",
                       text.len);
    if (!spans_cover(spans, n_spans, text.len))
        return err_set(err, ERR_INTERNAL, "the spans of a text do not cover it");
    encode(t, text, spans, n_spans, add_special, &w);
    work_end(&w);
    return w.failed;
}

int tokenizer_encode_spans(const struct tokenizer *t, struct view text,
                           const struct token_span *spans, size_t n_spans, bool add_special,
                           struct token_list *out, struct err *err)
{
    return tokenizer_encode_within(t, text, spans, n_spans, add_special, NULL, out, err);
}

int tokenizer_encode(const struct tokenizer *t, struct view text, bool add_special,
                     bool parse_special, struct token_list *out, struct err *err)
{
    struct token_span all = {.from = 0, .to = text.len, .trusted = parse_special};

    return tokenizer_encode_spans(t, text, &all, 1, add_special, out, err);
}
