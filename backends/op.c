/* Names and checks of operations; see op.h. */
#include "backends/op.h"

#include <stdarg.h>
#include <stdio.h>

#include "backends/formats/act.h"
#include "common/alloc.h"

static const char *const names[OP_COUNT] = {
#define OP(name, n_src, help) [OP_##name] = #name,
#include "backends/ops.def"
#undef OP
};

static const int n_sources[OP_COUNT] = {
#define OP(name, n_src, help) [OP_##name] = n_src,
#include "backends/ops.def"
#undef OP
};

const char *op_name(enum op_kind kind)
{
    return (unsigned)kind < OP_COUNT ? names[kind] : "unknown";
}

/* Writes the sentence; false, so that checks read as one expression. */
__attribute__((format(printf, 3, 4))) static bool fault(const struct op *op, struct err *err,
                                                        const char *fmt, ...)
{
    char text[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    err_set(err, ERR_INTERNAL, "op %s of layer %d cannot run: %s", op_name(op->kind), op->layer,
            text);
    return false;
}

#define NEED(cond, ...)                                                                            \
    do {                                                                                           \
        if (!(cond))                                                                               \
            return fault(op, err, __VA_ARGS__);                                                    \
    } while (0)

static bool is_f32(const struct tensor *t)
{
    return t->fmt && t->fmt->block_elems == 1 && t->fmt->block_bytes == 4 &&
           t->fmt->act == ACT_F32 && t->stride[1] % sizeof(float) == 0 &&
           t->stride[1] >= t->n[0] * sizeof(float);
}

/* Every dimension counts, and its bytes can be counted. */
static bool is_sane(const struct tensor *t)
{
    size_t bytes = 0;

    if (t->n[0] % t->fmt->block_elems)
        return false;
    for (int i = 0; i < 4; i++) {
        size_t more;

        if (t->n[i] < 1 || __builtin_mul_overflow(t->n[i], t->stride[i], &more) ||
            __builtin_add_overflow(bytes, more, &bytes))
            return false;
    }
    return true;
}

static bool check_tensors(const struct op *op, struct err *err)
{
    for (int i = 0; i < OP_MAX_DST; i++)
        NEED(!op->dst[i].fmt || is_sane(&op->dst[i]), "the shape of output %d is impossible", i);
    for (int i = 0; i < OP_MAX_SRC; i++) {
        NEED(!op->src[i].fmt || i < n_sources[op->kind], "input %d is one too many", i);
        NEED(!op->src[i].fmt || is_sane(&op->src[i]), "the shape of input %d is impossible", i);
    }
    return true;
}

/* A row tensor of that width. */
static bool check_rows(const struct op *op, const struct tensor *t, size_t width, const char *what,
                       struct err *err)
{
    NEED(is_f32(t), "%s is not rows of f32", what);
    NEED(t->n[0] == width, "%s has %zu columns where %zu are wanted", what, t->n[0], width);
    NEED(t->n[2] == 1 && t->n[3] == 1, "%s is not a matrix", what);
    return true;
}

/* A plain vector of f32, or nothing. */
static bool check_vector(const struct op *op, const struct tensor *t, size_t n, const char *what,
                         struct err *err)
{
    NEED(!t->fmt || is_f32(t), "%s is not f32", what);
    NEED(!t->fmt || t->n[0] == n, "%s has %zu elements where %zu are wanted", what, t->n[0], n);
    return true;
}

/* Rows of activations of n elements. */
static bool check_act(const struct op *op, const struct tensor *t, enum act_kind act, size_t n,
                      const char *what, struct err *err)
{
    NEED((unsigned)act < ACT_COUNT, "its kind of activations is unknown");
    if (act == ACT_F32)
        return check_rows(op, t, n, what, err);
    NEED(t->fmt && t->stride[1] == act_row_bytes(act, n),
         "%s has rows of %zu bytes where activations take %zu", what, t->stride[1],
         act_row_bytes(act, n));
    return true;
}

/* A matrix of weights, or a stack of them. */
static bool check_weights(const struct op *op, const struct tensor *w, enum act_kind act,
                          size_t n_in, size_t n_out, size_t n_stack, const char *what,
                          struct err *err)
{
    NEED(w->fmt, "%s is missing", what);
    NEED(w->fmt->act == act, "%s is %s, which wants other activations", what, w->fmt->name);
    NEED(w->n[0] == n_in && w->n[1] == n_out && w->n[2] == n_stack && w->n[3] == 1,
         "%s is %zux%zux%zu where %zux%zux%zu is wanted", what, w->n[0], w->n[1], w->n[2], n_in,
         n_out, n_stack);
    NEED(w->stride[1] >= format_row_bytes(w->fmt, w->n[0]), "the rows of %s overlap", what);
    return true;
}

static bool check_EMBED(const struct op *op, struct err *err)
{
    const struct tensor *table = &op->src[0];

    NEED(table->fmt && table->fmt->to_f32, "the table is missing or cannot be decoded");
    NEED((unsigned)op->p.embed.by <= OP_EMBED_FIRST, "what it looks up by is unknown");
    return check_rows(op, &op->dst[0], table->n[0], "the output", err);
}

static bool check_ROPE_TABLE(const struct op *op, struct err *err)
{
    const struct op_rope_params *p = &op->p.rope_table;

    NEED(p->n_dims >= 2 && p->n_dims % 2 == 0, "%u dimensions cannot be paired", p->n_dims);
    NEED(p->base > 1.0f && p->base < 1e30f, "the base %g is out of range", (double)p->base);
    NEED(p->freq_scale > 0.0f && p->freq_scale < 1e9f, "the frequency scale %g is out of range",
         (double)p->freq_scale);
    NEED(p->ext_factor == 0.0f || (p->n_ctx_orig > 0 && p->beta_fast > 0.0f && p->beta_slow > 0.0f),
         "YaRN needs the original context and both betas");
    return check_rows(op, &op->dst[0], p->n_dims, "the table", err) &&
           check_vector(op, &op->src[0], p->n_dims / 2, "the frequency factors", err);
}

/* RMSNORM, LAYERNORM. */
static bool check_norm(const struct op *op, size_t group, struct err *err)
{
    size_t width = op->dst[0].n[0];
    size_t wide = op->src[1].n[0] == width ? width : group;

    NEED(group > 0 && width % group == 0, "groups of %zu do not divide rows of %zu", group, width);
    return check_rows(op, &op->dst[0], width, "the output", err) &&
           check_rows(op, &op->src[0], width, "the input", err) &&
           check_vector(op, &op->src[1], wide, "the weights", err) &&
           check_vector(op, &op->src[2], wide, "the bias", err);
}

static bool check_RMSNORM(const struct op *op, struct err *err)
{
    return check_norm(op, op->p.rmsnorm.group, err);
}

static bool check_LAYERNORM(const struct op *op, struct err *err)
{
    return check_norm(op, op->p.layernorm.group, err);
}

static bool check_QUANTIZE(const struct op *op, struct err *err)
{
    size_t n = op->src[0].n[0];

    return check_rows(op, &op->src[0], n, "the input", err) &&
           check_act(op, &op->dst[0], op->p.quantize.act, n, "the output", err);
}

static bool check_MATMUL(const struct op *op, struct err *err)
{
    unsigned n = op->p.matmul.n_weights;

    NEED(n >= 1 && n <= 3, "%u weights", n);
    for (unsigned i = 0; i < n; i++)
        if (!check_weights(op, &op->src[1 + i], op->p.matmul.act, op->src[1].n[0], op->dst[i].n[0],
                           1, "the weight", err) ||
            !check_rows(op, &op->dst[i], op->dst[i].n[0], "the output", err) ||
            !check_vector(op, &op->src[4 + i], op->dst[i].n[0], "the bias", err))
            return false;
    return check_act(op, &op->src[0], op->p.matmul.act, op->src[1].n[0], "the input", err);
}

static bool check_HEADS(const struct op *op, struct err *err)
{
    const struct tensor *w = &op->src[1];
    enum act_kind act = op->p.heads.act;

    NEED(act < ACT_COUNT && w->n[0] % act_block_elems(act) == 0,
         "heads of %zu do not begin on blocks of activations", w->n[0]);
    return check_weights(op, w, act, w->n[0], w->n[1], w->n[2], "the weight", err) &&
           check_act(op, &op->src[0], act, w->n[0] * w->n[2], "the input", err) &&
           check_rows(op, &op->dst[0], w->n[1] * w->n[2], "the output", err);
}

static bool check_SLICE(const struct op *op, struct err *err)
{
    size_t from = op->p.slice.from, n = op->p.slice.n, group = op->p.slice.group;
    size_t width = op->src[0].n[0];

    NEED(n > 0 && n <= group && from <= group - n, "columns %zu to %zu of %zu", from, from + n,
         group);
    NEED(width % group == 0, "groups of %zu do not divide rows of %zu", group, width);
    return check_rows(op, &op->src[0], width, "the input", err) &&
           check_rows(op, &op->dst[0], width / group * n, "the output", err);
}

static bool check_JOIN(const struct op *op, struct err *err)
{
    size_t na = op->p.join.n[0], nb = op->p.join.n[1], a = op->src[0].n[0], b = op->src[1].n[0];

    NEED(na > 0 && nb > 0 && a % na == 0 && (b == nb || (b % nb == 0 && b / nb == a / na)),
         "groups of %zu and %zu cannot be joined from rows of %zu and %zu", na, nb, a, b);
    return check_rows(op, &op->src[0], a, "the first input", err) &&
           check_rows(op, &op->src[1], b, "the second input", err) &&
           check_rows(op, &op->dst[0], a + a / na * nb, "the output", err);
}

static bool check_ROPE(const struct op *op, struct err *err)
{
    size_t width = op->dst[0].n[0], head_dim = op->p.rope.head_dim, n_dims = op->p.rope.n_dims;

    NEED(head_dim > 0 && width % head_dim == 0, "heads of %zu do not divide rows of %zu", head_dim,
         width);
    NEED(n_dims >= 2 && n_dims % 2 == 0 && n_dims <= head_dim &&
             op->p.rope.offset <= head_dim - n_dims,
         "%zu of %zu dimensions cannot be rotated", n_dims, head_dim);
    return check_rows(op, &op->dst[0], width, "the output", err) &&
           check_rows(op, &op->src[0], width, "the input", err) &&
           check_rows(op, &op->src[1], n_dims, "the table", err);
}

static bool check_cache(const struct op *op, const struct tensor *t, size_t dim, size_t n_kv_heads,
                        const char *what, struct err *err)
{
    NEED(t->fmt && t->fmt->from_f32 && t->fmt->to_f32, "%s is missing or of no cache format", what);
    NEED(t->n[0] == dim && t->n[2] == n_kv_heads,
         "%s holds %zu heads of %zu where %zu of %zu are wanted", what, t->n[2], t->n[0],
         n_kv_heads, dim);
    NEED(t->n[1] == OP_KV_CHUNK, "%s has chunks of %zu positions where %d are wanted", what,
         t->n[1], OP_KV_CHUNK);
    return true;
}

static bool check_KV_STORE(const struct op *op, struct err *err)
{
    size_t n_kv = op->p.kv_store.n_kv_heads, k_dim = op->p.kv_store.head_dim;
    size_t v_dim = op->p.kv_store.v_dim;

    NEED(!op->src[1].fmt == !op->src[3].fmt, "values without a cache of them, or one without them");
    if (op->src[1].fmt && (!check_cache(op, &op->src[3], v_dim, n_kv, "the cache of values", err) ||
                           !check_rows(op, &op->src[1], v_dim * n_kv, "the values", err)))
        return false;
    return check_cache(op, &op->src[2], k_dim, n_kv, "the cache of keys", err) &&
           check_rows(op, &op->src[0], k_dim * n_kv, "the keys", err);
}

/* Lists are int32 in f32-sized slots, as many as a row has columns. */
static bool check_INDEXER(const struct op *op, struct err *err)
{
    const struct tensor *k = &op->src[2];
    size_t n_heads = op->p.indexer.n_heads, dim = op->p.indexer.head_dim;

    NEED(n_heads > 0 && dim > 0, "%zu heads of %zu", n_heads, dim);
    return check_cache(op, k, dim, 1, "the cache of keys", err) &&
           check_rows(op, &op->src[0], n_heads * dim, "the queries", err) &&
           check_rows(op, &op->src[1], n_heads, "the weights of heads", err) &&
           check_rows(op, &op->dst[0], op->dst[0].n[0], "the list", err);
}

static bool check_ATTENTION(const struct op *op, struct err *err)
{
    size_t n_heads = op->p.attention.n_heads, n_kv = op->p.attention.n_kv_heads;
    size_t k_dim = op->p.attention.head_dim, v_dim = op->p.attention.v_dim;

    NEED(n_kv > 0 && n_heads > 0 && n_heads % n_kv == 0, "%zu heads cannot share %zu", n_heads,
         n_kv);
    NEED(op->src[1].n[3] == op->src[2].n[3], "the caches differ in length");
    NEED(!op->p.attention.chunked || (op->p.attention.window && !op->p.attention.non_causal),
         "chunks need a window, and no look ahead");
    return check_cache(op, &op->src[1], k_dim, n_kv, "the cache of keys", err) &&
           check_cache(op, &op->src[2], v_dim, n_kv, "the cache of values", err) &&
           check_rows(op, &op->src[0], k_dim * n_heads, "the queries", err) &&
           check_rows(op, &op->dst[0], v_dim * n_heads, "the output", err) &&
           check_vector(op, &op->src[3], n_heads, "the sinks", err);
}

static bool check_SPARSE(const struct op *op, struct err *err)
{
    NEED(!op->p.attention.window && !op->p.attention.non_causal,
         "a list of positions leaves no window to be chosen");
    return check_ATTENTION(op, err) &&
           check_rows(op, &op->src[4], op->src[4].n[0], "the list of positions", err);
}

static bool check_COMPRESS(const struct op *op, struct err *err)
{
    const struct op_compress_params *p = &op->p.compress;
    const struct tensor *kept = &op->src[4];
    size_t width = (size_t)p->dim * (p->overlap ? 2 : 1),
           rows = (size_t)p->group * (p->overlap + 1);

    NEED(p->group >= 1 && p->dim >= 1, "groups of %u with keys of %u", p->group, p->dim);
    NEED(p->rope.n_dims >= 2 && p->rope.n_dims % 2 == 0 && p->rope.n_dims <= p->dim,
         "%u of %u dimensions cannot be rotated", p->rope.n_dims, p->dim);
    NEED(is_f32(kept) && kept->n[1] >= rows, "it does not keep %zu rows", rows);
    NEED(p->column <= kept->n[0] && 2 * width <= kept->n[0] - p->column,
         "%zu columns from %u do not lie in the %zu kept", 2 * width, p->column, kept->n[0]);
    NEED(is_f32(&op->src[2]) && op->src[2].n[1] == p->group, "it has no scores by place");
    NEED(op->src[3].fmt, "its norm is missing");
    return check_rows(op, &op->src[0], width, "the input", err) &&
           check_rows(op, &op->src[1], width, "the scores", err) &&
           check_rows(op, &op->src[2], width, "the scores by place", err) &&
           check_vector(op, &op->src[3], p->dim, "the norm", err) &&
           check_cache(op, &op->src[5], p->dim, 1, "the cache", err);
}

static bool check_NEAR_FAR(const struct op *op, struct err *err)
{
    size_t heads = op->p.attention.n_heads, dim = op->p.attention.head_dim;

    NEED(heads > 0 && op->p.attention.n_kv_heads == 1 && op->p.attention.v_dim == dim,
         "it needs heads that share one key, which is their value");
    NEED(op->p.attention.window > 0 && op->p.attention.group > 0 && !op->p.attention.chunked &&
             !op->p.attention.non_causal,
         "it needs a window and groups behind it");
    return check_cache(op, &op->src[1], dim, 1, "the cache of keys", err) &&
           check_cache(op, &op->src[2], dim, 1, "the cache of groups", err) &&
           check_rows(op, &op->src[0], dim * heads, "the queries", err) &&
           check_rows(op, &op->dst[0], dim * heads, "the output", err) &&
           check_vector(op, &op->src[3], heads, "the sinks", err) &&
           (!op->src[4].fmt || check_rows(op, &op->src[4], op->src[4].n[0], "the list", err));
}

static bool check_HYPER_MIX(const struct op *op, struct err *err)
{
    size_t n = op->p.hyper.n, width = op->src[0].n[0];

    NEED(n >= 1 && n <= OP_MAX_STREAMS, "%zu streams; there may be 1 to %d", n, OP_MAX_STREAMS);
    NEED(width == n || width == n * (n + 2), "%zu numbers for %zu streams", width, n);
    NEED(op->src[1].fmt && op->src[2].fmt, "its scales or its base are missing");
    return check_rows(op, &op->src[0], width, "the input", err) &&
           check_vector(op, &op->src[1], width == n ? 1 : 3, "the scales", err) &&
           check_vector(op, &op->src[2], width, "the base", err) &&
           check_rows(op, &op->dst[0], width, "the output", err);
}

static bool check_HYPER_IN(const struct op *op, struct err *err)
{
    size_t n = op->p.hyper.n, width = op->dst[0].n[0];

    NEED(n >= 1 && n <= OP_MAX_STREAMS && op->src[1].n[0] >= n, "%zu streams by %zu shares", n,
         op->src[1].n[0]);
    return check_rows(op, &op->src[0], n * width, "the streams", err) &&
           check_rows(op, &op->src[1], op->src[1].n[0], "the shares", err) &&
           check_rows(op, &op->dst[0], width, "the output", err);
}

/* HYPER_OUT, CORRECT: all streams take of one row, by so many shares. */
static bool check_into_streams(const struct op *op, size_t shares, struct err *err)
{
    size_t n = op->p.hyper.n, width = op->src[1].n[0];

    NEED(n >= 1 && n <= OP_MAX_STREAMS, "%zu streams; there may be 1 to %d", n, OP_MAX_STREAMS);
    return check_rows(op, &op->src[0], n * width, "the streams", err) &&
           check_rows(op, &op->src[1], width, "the input", err) &&
           check_rows(op, &op->src[2], shares, "the shares", err) &&
           check_rows(op, &op->dst[0], n * width, "the output", err);
}

static bool check_HYPER_OUT(const struct op *op, struct err *err)
{
    size_t n = op->p.hyper.n;

    return check_into_streams(op, n * (n + 2), err);
}

static bool check_PREDICT(const struct op *op, struct err *err)
{
    size_t n = op->p.hyper.n, width = op->dst[0].n[0];

    NEED(n >= 1 && n <= OP_MAX_STREAMS && width % n == 0, "rows of %zu for %zu streams", width, n);
    return check_rows(op, &op->src[0], width, "the streams", err) &&
           check_rows(op, &op->src[1], n * n, "the shares", err) &&
           check_rows(op, &op->dst[0], width, "the output", err);
}

static bool check_CORRECT(const struct op *op, struct err *err)
{
    return check_into_streams(op, op->p.hyper.n, err);
}

static bool check_MAGNITUDE(const struct op *op, struct err *err)
{
    size_t width = op->dst[0].n[0], n = op->src[1].n[0];

    NEED(n > 0 && width % n == 0, "groups of %zu do not divide rows of %zu", n, width);
    return check_rows(op, &op->src[0], width, "the input", err) &&
           check_rows(op, &op->src[1], n, "the row of that length", err) &&
           check_rows(op, &op->dst[0], width, "the output", err);
}

static bool check_GLU(const struct op *op, struct err *err)
{
    size_t n = op->dst[0].n[0];
    bool up = op->src[1].fmt != NULL;

    NEED((unsigned)op->p.glu.act <= OP_ACT_NONE, "its activation is unknown");
    NEED(up || op->p.glu.act == OP_ACT_RELU2 || op->p.glu.act == OP_ACT_GELU ||
             op->p.glu.act == OP_ACT_SIGMOID,
         "it has no second factor");
    return check_rows(op, &op->dst[0], n, "the output", err) &&
           check_rows(op, &op->src[0], n, "the gate", err) &&
           (!up || check_rows(op, &op->src[1], n, "the second factor", err));
}

static bool check_ADD(const struct op *op, struct err *err)
{
    size_t n = op->dst[0].n[0];

    return check_rows(op, &op->dst[0], n, "the output", err) &&
           check_rows(op, &op->src[0], n, "the first input", err) &&
           check_rows(op, &op->src[1], n, "the second input", err);
}

static bool check_map(const struct op *op, struct err *err)
{
    size_t n = op->dst[0].n[0];

    return check_rows(op, &op->dst[0], n, "the output", err) &&
           check_rows(op, &op->src[0], n, "the input", err);
}

static bool check_SCALE(const struct op *op, struct err *err)
{
    NEED(op->p.scale.temperature == 0.0f || op->p.scale.step > 0,
         "a temperature needs a step of positions");
    return check_map(op, err) &&
           check_vector(op, &op->src[1], op->src[1].n[0] == 1 ? 1 : op->dst[0].n[0], "the factor",
                        err);
}

static bool check_ABOVE(const struct op *op, struct err *err)
{
    NEED(op->dst[0].n[0] > 1, "a row of one element has no deviation");
    return check_map(op, err);
}

static bool check_SOFTCAP(const struct op *op, struct err *err)
{
    NEED(op->p.softcap.cap > 0.0f, "a cap of %g is not positive", (double)op->p.softcap.cap);
    return check_map(op, err);
}

/* A list of int32 for each token, or none. */
static bool check_ids(const struct op *op, const struct tensor *t, size_t n, struct err *err)
{
    NEED(!t->fmt || (t->fmt == format_of(FORMAT_i32) && t->n[0] == n && t->n[2] == 1),
         "its list of experts is not of %zu for each token", n);
    return true;
}

static bool check_ROUTER(const struct op *op, struct err *err)
{
    size_t n = op->p.router.n_expert, n_used = op->p.router.n_used;
    size_t n_group = op->p.router.n_group, used = op->p.router.n_group_used;

    NEED(n >= 1 && n <= OP_MAX_EXPERTS, "%zu experts; at most %d can be chosen from", n,
         OP_MAX_EXPERTS);
    NEED(n_used >= 1 && n_used <= n, "%zu of %zu experts cannot be chosen", n_used, n);
    NEED((unsigned)op->p.router.gating <= OP_GATING_SQRT_SOFTPLUS, "its gating is unknown");
    if (n_group > 1)
        NEED(n % n_group == 0 && used >= 1 && used <= n_group && n_used <= n / n_group * used,
             "%zu of %zu experts cannot be chosen from %zu of %zu groups", n_used, n, used,
             n_group);
    return check_rows(op, &op->src[0], n, "the logits", err) &&
           check_vector(op, &op->src[1], n, "the bias", err) &&
           check_vector(op, &op->src[2], n, "the factors", err) &&
           check_ids(op, &op->src[3], n_used, err) &&
           check_rows(op, &op->dst[0], n_used, "the ids", err) &&
           check_rows(op, &op->dst[1], n_used, "the weights", err);
}

/* A row of n for each expert, or nothing. */
static bool check_expert_bias(const struct op *op, const struct tensor *t, size_t n,
                              const char *what, struct err *err)
{
    NEED(!t->fmt || t->n[1] == op->p.moe.n_expert, "%s has %zu rows for %u experts", what, t->n[1],
         op->p.moe.n_expert);
    return !t->fmt || check_rows(op, t, n, what, err);
}

static bool check_MOE(const struct op *op, struct err *err)
{
    size_t n = op->p.moe.n_expert, n_used = op->p.moe.n_used;
    size_t width = op->dst[0].n[0], ff = op->src[3].n[1];

    NEED(n >= 1 && n <= OP_MAX_EXPERTS && n_used >= 1 && n_used <= n,
         "%zu of %zu experts cannot be chosen", n_used, n);
    NEED((unsigned)op->p.moe.act <= OP_ACT_NONE, "its activation is unknown");
    return check_weights(op, &op->src[3], op->p.moe.in_act, width, ff, n, "gate", err) &&
           check_weights(op, &op->src[4], op->p.moe.in_act, width, ff, n, "up", err) &&
           check_weights(op, &op->src[5], op->p.moe.mid_act, ff, width, n, "down", err) &&
           check_rows(op, &op->dst[0], width, "the output", err) &&
           check_act(op, &op->src[0], op->p.moe.in_act, width, "the input", err) &&
           check_rows(op, &op->src[1], n_used, "the ids", err) &&
           check_rows(op, &op->src[2], n_used, "the weights of experts", err) &&
           check_expert_bias(op, &op->src[6], ff, "the bias of gate", err) &&
           check_expert_bias(op, &op->src[7], ff, "the bias of up", err) &&
           check_expert_bias(op, &op->src[8], width, "the bias of down", err);
}

static bool check_ROWS(const struct op *op, struct err *err)
{
    return check_map(op, err);
}

static bool check_CONV(const struct op *op, struct err *err)
{
    const struct tensor *w = &op->src[1], *kept = &op->src[3];
    size_t sum = 0;

    for (int i = 0; i < OP_MAX_DST; i++) {
        if (!op->dst[i].fmt)
            continue;
        if (!check_rows(op, &op->dst[i], op->dst[i].n[0], "the output", err))
            return false;
        sum += op->dst[i].n[0];
    }
    NEED(is_f32(w) && w->n[1] == sum && w->n[2] == 1 && w->n[3] == 1,
         "it has no taps of %zu columns", sum);
    NEED(w->n[0] >= 2 && w->n[0] <= OP_CONV_TAPS, "%zu taps; there may be 2 to %d", w->n[0],
         OP_CONV_TAPS);
    NEED(is_f32(kept) && kept->n[1] == w->n[0] - 1, "it does not keep %zu inputs", w->n[0] - 1);
    NEED(op->p.conv.column <= kept->n[0] && sum <= kept->n[0] - op->p.conv.column,
         "%zu columns from %u do not lie in the %zu kept", sum, op->p.conv.column, kept->n[0]);
    return check_rows(op, &op->src[0], sum, "the input", err) &&
           check_vector(op, &op->src[2], sum, "the bias", err);
}

static bool check_DECAY(const struct op *op, struct err *err)
{
    size_t n = op->dst[0].n[0];
    const struct tensor *a = &op->src[2];

    NEED(!a->fmt == !op->dst[1].fmt, "decays and what makes them must both be there");
    NEED(!a->fmt || (is_f32(a) && n % a->n[0] == 0), "%zu columns are no groups of %zu", n,
         a->n[0]);
    return check_rows(op, &op->dst[0], n, "the output", err) &&
           check_rows(op, &op->src[0], n, "the input", err) &&
           check_vector(op, &op->src[1], n, "the bias", err) &&
           (!a->fmt || check_rows(op, &op->dst[1], n, "the decays", err));
}

static bool check_state(const struct op *op, const struct tensor *t, size_t rows, size_t cols,
                        size_t heads, struct err *err)
{
    NEED(is_f32(t) && t->n[0] == OP_STATE_COLS && t->n[1] == rows &&
             t->n[2] == (cols + OP_STATE_COLS - 1) / OP_STATE_COLS && t->n[3] == heads,
         "the state is not of %zu heads of %zux%zu", heads, rows, cols);
    return true;
}

static bool check_DELTA(const struct op *op, struct err *err)
{
    const struct op_delta_params *p = &op->p.delta;
    size_t heads = p->n_heads, k = p->k_dim, v = p->v_dim, decays = op->src[3].n[0];

    NEED(heads && p->n_k_heads && heads % p->n_k_heads == 0, "%zu heads cannot share %u", heads,
         p->n_k_heads);
    NEED(k && v, "its heads are empty");
    NEED(decays == heads || decays == heads * k, "%zu decays for %zu heads of %zu", decays, heads,
         k);
    return check_rows(op, &op->dst[0], heads * v, "the output", err) &&
           check_rows(op, &op->src[0], p->n_k_heads * k, "the queries", err) &&
           check_rows(op, &op->src[1], p->n_k_heads * k, "the keys", err) &&
           check_rows(op, &op->src[2], heads * v, "the values", err) &&
           check_rows(op, &op->src[3], decays, "the decays", err) &&
           check_rows(op, &op->src[4], heads, "the rates", err) &&
           check_state(op, &op->src[5], k, v, heads, err);
}

static bool check_SHIFT(const struct op *op, struct err *err)
{
    const struct tensor *kept = &op->src[1];
    size_t n = op->dst[0].n[0];

    NEED(is_f32(kept) && kept->n[1] >= 1, "it keeps no input");
    NEED(op->p.shift.column <= kept->n[0] && n <= kept->n[0] - op->p.shift.column,
         "%zu columns from %u do not lie in the %zu kept", n, op->p.shift.column, kept->n[0]);
    return check_map(op, err);
}

static bool check_LERP(const struct op *op, struct err *err)
{
    size_t n = op->dst[0].n[0];

    return check_map(op, err) && check_rows(op, &op->src[1], n, "the second input", err) &&
           check_rows(op, &op->src[2], n, "the share", err);
}

static bool check_WKV(const struct op *op, struct err *err)
{
    static const char *const inputs[] = {"the receptances", "the decays", "the keys", "the values",
                                         "the rates"};
    static const char *const columns[] = {"the numbers of keys to remove",
                                          "the numbers of keys to write", "the bonus"};
    size_t heads = op->p.wkv.n_heads, dim = op->p.wkv.head_dim, n = heads * dim;

    NEED(heads && dim, "%zu heads of %zu", heads, dim);
    for (int i = 0; i < 5; i++)
        if (!check_rows(op, &op->src[i], n, inputs[i], err))
            return false;
    for (int i = 0; i < 3; i++) {
        NEED(op->src[5 + i].fmt, "%s are missing", columns[i]);
        if (!check_vector(op, &op->src[5 + i], n, columns[i], err))
            return false;
    }
    return check_rows(op, &op->dst[0], n, "the output", err) &&
           check_rows(op, &op->dst[1], n, "the bonus of values", err) &&
           check_state(op, &op->src[8], dim, dim, heads, err);
}

static bool check_SSM(const struct op *op, struct err *err)
{
    const struct op_ssm_params *p = &op->p.ssm;
    const struct tensor *a = &op->src[4];
    size_t heads = p->n_heads, dim = p->head_dim, n = p->n_state;

    NEED(heads && p->n_groups && heads % p->n_groups == 0, "%zu heads cannot share %u", heads,
         p->n_groups);
    NEED(dim && n, "its heads are empty");
    NEED(!p->each || (heads == 1 && n <= OP_SSM_EACH), "%zu heads of %zu with a decay each", heads,
         n);
    NEED(!p->each || (is_f32(a) && a->n[0] == n && a->n[1] == dim),
         "what makes decays is not %zux%zu", n, dim);
    NEED(op->src[5].fmt, "the way through is missing");
    return check_rows(op, &op->dst[0], heads * dim, "the output", err) &&
           check_rows(op, &op->src[0], heads * dim, "the input", err) &&
           check_rows(op, &op->src[1], p->n_groups * n, "what goes in", err) &&
           check_rows(op, &op->src[2], p->n_groups * n, "what goes out", err) &&
           check_rows(op, &op->src[3], p->each ? dim : heads, "the steps", err) &&
           (p->each || check_rows(op, a, heads, "the decays", err)) &&
           check_vector(op, &op->src[5], p->each ? dim : heads, "the way through", err) &&
           check_state(op, &op->src[6], n, dim, heads, err);
}

typedef bool check_fn(const struct op *op, struct err *err);

static check_fn *const checks[OP_COUNT] = {
#define OP(name, n_src, help) [OP_##name] = check_##name,
#include "backends/ops.def"
#undef OP
};

int op_check(const struct op *op, struct err *err)
{
    if ((unsigned)op->kind >= OP_COUNT)
        return err_set(err, ERR_INTERNAL, "op %u is unknown; it is not in ops.def",
                       (unsigned)op->kind);
    return check_tensors(op, err) && checks[op->kind](op, err) ? 0 : -ERR_INTERNAL;
}
