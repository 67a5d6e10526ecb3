/* SentencePiece's unigram model: the cut of a text whose tokens have the highest sum of scores. */
#include <float.h>
#include <string.h>

#include "common/alloc.h"
#include "common/utf8.h"
#include "daemon/tokenizer/tokenizer_priv.h"

/* An unknown character costs this much more than the worst token. */
#define UNKNOWN_PENALTY 10.0f

/* The best cut of the text up to a place: its last token, where that begins, the sum. */
struct best {
    int32_t id;
    uint32_t from;
    double score;
};

int ugm_read(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    const struct gguf_value *map = gguf_find(g, "tokenizer.ggml.precompiled_charsmap");
    float least = FLT_MAX;
    int r = gguf_get_bool(g, "tokenizer.ggml.remove_extra_whitespaces", &t->merge_spaces, err);

    if (r < 0)
        return r;
    if (map && (r = charsmap_create(map, &t->charsmap, err)) < 0)
        return r;
    if (t->unk < 0)
        return err_set_param(
            err, ERR_FORMAT, "tokenizer.ggml.unknown_token_id",
            "the tokenizer has no unknown token (tokenizer.ggml.unknown_token_id)");
    for (size_t i = 0; i < t->n_vocab; i++)
        if (t->attrs[i] & ATTR_NORMAL)
            least = MIN(least, t->scores[i]);
    t->unk_score = (double)(least - UNKNOWN_PENALTY);
    prefix_build(&t->words, &t->texts, t->attrs, t->n_vocab,
                 ATTR_NORMAL | ATTR_USER_DEFINED | ATTR_UNUSED);
    return 0;
}

/* What a text is on the way to its normal form. */
struct normal {
    const struct tokenizer *t;
    struct work *work;
    struct str text;
    bool in_word, prefixed;
};

static void add_normal(struct normal *n, struct view bytes)
{
    /* A byte may be a space, which is three, or begin a word, which has one before it. */
    if (work_text(n->work, &n->text, 4 * bytes.len) < 0)
        return;
    for (size_t i = 0; i < bytes.len; i++) {
        if (bytes.p[i] == ' ') {
            n->in_word = false;
            if (!n->t->merge_spaces)
                str_adds(&n->text, "▁");
            continue;
        }
        if (!n->in_word) {
            n->in_word = true;
            if ((n->t->add_space_prefix && !n->prefixed) || n->t->merge_spaces) {
                str_adds(&n->text, "▁");
                n->prefixed = true;
            }
        }
        str_addc(&n->text, bytes.p[i]);
    }
}

static void normalise(struct normal *n, struct view text)
{
    for (size_t at = 0; at < text.len && work_step(n->work) == 0;) {
        struct view rest = view_sub(text, at, text.len), as = {0};
        size_t len = 0;
        unsigned cp;

        if (n->t->charsmap &&
            (n->work->failed = charsmap_find(n->t->charsmap, rest, &len, &as, n->work->err)) < 0)
            return;
        if (!len) {
            len = utf8_decode(rest.p, rest.len, &cp);
            as = len ? view_sub(rest, 0, len) : VIEW("\xef\xbf\xbd");
            len = MAX(len, (size_t)1);
        }
        add_normal(n, as);
        at += len;
    }
}

static size_t char_len(unsigned char c)
{
    return c < 0xc0 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

static void offer(struct best *place, int32_t id, size_t from, double score)
{
    if (score > place->score)
        *place = (struct best){id, (uint32_t)from, score};
}

/* Offers every token that stands at from; a character that is no token by itself may be unknown. */
static void offer_from(const struct tokenizer *t, struct view text, struct best *best, size_t from,
                       size_t len)
{
    struct prefix_walk walk = {.hi = t->words.n};
    bool single = false;
    int32_t id;

    for (size_t to = from; to < text.len; to++) {
        if (!prefix_step(&t->words, &t->texts, &walk, (unsigned char)text.p[to], &id))
            break;
        if (id < 0)
            continue;
        single = single || to + 1 - from == len;
        /* Scores are logarithms of probabilities: 0 is a token that is always taken. */
        offer(&best[to + 1], id, from,
              best[from].score + (t->attrs[id] & ATTR_USER_DEFINED ? 0.0 : (double)t->scores[id]));
    }
    if (!single)
        offer(&best[from + len], t->unk, from, best[from].score + t->unk_score);
}

/* Tokens from the end to the start, several unknown ones in a row as one; then turned round. */
static void emit(const struct tokenizer *t, const struct best *best, size_t end, struct work *w)
{
    struct token_list *out = w->out;
    size_t first = out->n;
    bool was_unknown = false;

    for (size_t at = end; at > 0; at = best[at].from) {
        bool unknown = best[at].id == t->unk;

        if (!unknown || !was_unknown)
            work_add(w, best[at].id);
        was_unknown = unknown;
    }
    for (size_t i = first, k = out->n; i + 1 < k; i++, k--) {
        int32_t id = out->ids[i];

        out->ids[i] = out->ids[k - 1];
        out->ids[k - 1] = id;
    }
}

void ugm_encode(const struct tokenizer *t, struct view text, struct work *w)
{
    struct normal n = {.t = t, .work = w};
    struct best *best = NULL;
    size_t cap = 0;
    struct view v;

    normalise(&n, text);
    v = view_of_str(&n.text);
    if (w->failed || v.len == 0 || WORK_GROW(w, best, v.len + 1, cap) < 0)
        goto out;
    for (size_t i = 0; i <= v.len; i++)
        best[i] = (struct best){t->unk, 0, i ? -DBL_MAX : 0};
    for (size_t at = 0; at < v.len && work_step(w) == 0;) {
        size_t len = MIN(char_len((unsigned char)v.p[at]), v.len - at);

        offer_from(t, v, best, at, len);
        at += len;
    }
    if (!w->failed)
        emit(t, best, v.len, w);
out:
    work_free(w, best, cap, sizeof *best);
    work_text_free(w, &n.text);
}
