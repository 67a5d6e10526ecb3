/* Beds of the ops that share their work among threads in other ways: matrices, caches, experts. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/formats/act.h"
#include "tests/kernels/ops/caches.h"

#define MAX_N    1024 /* elements of a row of weights */
#define CHECK(b) ((*ret_run)++, bed_check(&(b)))

static double dot(const struct tensor *w, size_t stack, size_t row, enum act_kind act,
                  const struct tensor *x, size_t r)
{
    float weights[MAX_N];
    double sum = 0;

    w->fmt->to_f32((const char *)w->data + stack * w->stride[2] + row * w->stride[1], weights,
                   w->n[0]);
    for (size_t i = 0; i < w->n[0]; i++)
        sum += (double)weights[i] * bed_activation(act, x, r, i);
    return sum;
}

/* -- MATMUL ---------------------------------------------------------------------------- */

static double want_matmul(const struct bed *b, int o, size_t r, size_t i)
{
    const struct tensor *bias = &b->op.src[4 + o];

    return dot(&b->op.src[1 + o], 0, i, b->op.p.matmul.act, &b->op.src[0], r) +
           (bias->fmt ? (double)((const float *)bias->data)[i] : 0.0);
}

static int matmul(const struct format *const f[3], unsigned n_weights, size_t n, size_t rows,
                  bool bias, int *ret_run)
{
    static const size_t outs[] = {37, 16, 70};
    struct bed b = {.op = {.kind = OP_MATMUL}, .nmse = 1e-10, .want = want_matmul, .row_src = 1};

    snprintf(b.what, sizeof(b.what), "%s%s%s%s%s, n=%zu, rows=%zu%s", f[0]->name,
             n_weights > 1 ? "+" : "", n_weights > 1 ? f[1]->name : "", n_weights > 2 ? "+" : "",
             n_weights > 2 ? f[2]->name : "", n, rows, bias ? ", bias" : "");
    b.op.p.matmul.n_weights = n_weights;
    b.op.p.matmul.act = f[0]->act;
    b.op.src[0] = bed_act(&b, f[0]->act, n, rows);
    for (unsigned i = 0; i < n_weights; i++) {
        b.op.src[1 + i] = bed_weights(&b, f[i], n, outs[i], 1);
        if (bias && i != 1)
            b.op.src[4 + i] = bed_f32(&b, outs[i], 1);
        bed_out(&b, (int)i, outs[i], rows);
    }
    b.run.rows = rows;
    return CHECK(b);
}

int cases_MATMUL(int *ret_run)
{
    static const size_t rows[] = {1, 4, 5, 30};
    int bad = 0;

    for (int i = 0; i < FORMAT_COUNT; i++) {
        const struct format *f = format_of((enum format_id)i);

        if (!f->from_f32 || (f->act == ACT_F32 && f->block_bytes == 1))
            continue;
        for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++)
            bad += matmul((const struct format *const[3]){f, f, f}, 1, r % 2 ? 768 : 256, rows[r],
                          false, ret_run);
    }
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        static const char *const trios[][3] = {
            {"q4_k", "q4_k", "q6_k"}, {"q8_0", "q4_0", "mxfp4"}, {"f16", "f32", "bf16"}};

        for (size_t t = 0; t < sizeof(trios) / sizeof(trios[0]); t++) {
            const struct format *f[3];

            for (int i = 0; i < 3; i++)
                f[i] = format_of_name(trios[t][i]);
            if (f[0] && f[1] && f[2])
                bad += matmul(f, 3 - (r == 1), 512, rows[r], true, ret_run);
        }
    }
    return bad;
}

/* -- caches ----------------------------------------------------------------------------- */

static const char *const cache_formats[] = {"f32", "f16", "q8_0", "q4_0"};

int cases_KV_STORE(int *ret_run)
{
    int bad = 0;

    for (int f = 0; f < 4; f++)
        for (int way = 0; way < 4; way++) {
            const struct format *fmt = format_of_name(cache_formats[f]);
            bool ring = way & 1, keys_alone = way & 2;
            struct bed b = {.op = {.kind = OP_KV_STORE}, .row_src = keys_alone ? 1 : 3};
            size_t heads = 3, rows = 21;

            snprintf(b.what, sizeof(b.what), "%s%s%s", fmt->name, ring ? ", ring" : "",
                     keys_alone ? ", keys alone" : "");
            b.op.p.kv_store.n_kv_heads = (unsigned)heads;
            b.op.p.kv_store.head_dim = 64;
            b.op.p.kv_store.v_dim = 96;
            b.op.src[0] = bed_f32(&b, 64 * heads, rows);
            b.op.src[2] = bed_cache(&b, fmt, 64, heads, 2);
            b.out[b.n_out++] = b.op.src[2];
            if (!keys_alone) {
                b.op.src[1] = bed_f32(&b, 96 * heads, rows);
                b.op.src[3] = bed_cache(&b, fmt, 96, heads, 2);
                b.out[b.n_out++] = b.op.src[3];
            }
            b.run = (struct op_run){.rows = rows, .pos = ring ? 1014 : 250};
            bad += CHECK(b);
        }
    return bad;
}

/* -- ATTENTION ----------------------------------------------------------------------------- */

struct attention_shape {
    const char *fmt;
    unsigned heads, kv_heads, dim, v_dim, window;
    float cap;
    bool sinks;
    int sees; /* 0: the past, 1: also what is behind, 2: the past within a chunk of its own */
    size_t pos, rows, chunks; /* chunks 0: as many as positions */
};

/* Softmax in double over what row r sees; truth[] holds the weights of the last row and head. */
static double want_attention(const struct bed *b, int o, size_t r, size_t i)
{
    const struct op *op = &b->op;
    size_t dim = op->p.attention.head_dim, v_dim = op->p.attention.v_dim;
    size_t head = i / v_dim, kv = head / (op->p.attention.n_heads / op->p.attention.n_kv_heads);
    size_t window = op->p.attention.window;
    size_t to = op->p.attention.non_causal ? b->run.pos + b->run.rows : b->run.pos + r + 1;
    size_t from = op->p.attention.chunked                 ? (b->run.pos + r) / window * window
                  : window && b->run.pos + r + 1 > window ? b->run.pos + r + 1 - window
                                                          : 0;
    const float *q = tensor_f32(&op->src[0], r) + head * dim;
    double max = -INFINITY, sum = 0, value = 0;
    float row[256];

    (void)o;
    if (i % v_dim == 0)
        for (size_t p = from; p < to; p++) {
            double s = 0;

            op->src[1].fmt->to_f32(bed_slot(&op->src[1], kv, p), row, dim);
            for (size_t d = 0; d < dim; d++)
                s += (double)q[d] * (double)row[d];
            s *= (double)op->p.attention.scale;
            if (op->p.attention.soft_cap != 0.0f)
                s = (double)op->p.attention.soft_cap * tanh(s / (double)op->p.attention.soft_cap);
            b->truth[p] = s;
        }
    for (size_t p = from; p < to; p++)
        max = fmax(max, b->truth[p]);
    for (size_t p = from; p < to; p++) {
        float block[32];
        size_t elems = op->src[2].fmt->block_elems;
        const char *at = bed_slot(&op->src[2], kv, p);

        op->src[2].fmt->to_f32(at + i % v_dim / elems * op->src[2].fmt->block_bytes, block, elems);
        sum += exp(b->truth[p] - max);
        value += exp(b->truth[p] - max) * (double)block[i % v_dim % elems];
    }
    if (op->src[3].fmt)
        sum += exp((double)((const float *)op->src[3].data)[head] - max);
    return value / sum;
}

static int attention(const struct attention_shape *s, int *ret_run)
{
    struct bed b = {
        .op = {.kind = OP_ATTENTION}, .nmse = 1e-10, .want = want_attention, .row_src = 1};
    const struct format *f = format_of_name(s->fmt);
    size_t end = s->pos + s->rows;
    size_t chunks = s->chunks ? s->chunks : (end + OP_KV_CHUNK - 1) / OP_KV_CHUNK + 1;

    snprintf(b.what, sizeof(b.what), "%s %u/%u heads of %u/%u, window %u%s%s%s, pos %zu, rows %zu",
             s->fmt, s->heads, s->kv_heads, s->dim, s->v_dim, s->window, s->sinks ? ", sinks" : "",
             s->cap != 0.0f ? ", cap" : "",
             s->sees == 1 ? ", all"
             : s->sees    ? ", chunks"
                          : "",
             s->pos, s->rows);
    b.whole = s->sees == 1;
    b.op.p.attention.n_heads = s->heads;
    b.op.p.attention.n_kv_heads = s->kv_heads;
    b.op.p.attention.head_dim = s->dim;
    b.op.p.attention.v_dim = s->v_dim;
    b.op.p.attention.window = s->window;
    b.op.p.attention.scale = 1.0f / sqrtf((float)s->dim);
    b.op.p.attention.soft_cap = s->cap;
    b.op.p.attention.non_causal = s->sees == 1;
    b.op.p.attention.chunked = s->sees == 2;
    b.op.src[0] = bed_f32(&b, (size_t)s->heads * s->dim, s->rows);
    b.op.src[1] = bed_cache(&b, f, s->dim, s->kv_heads, chunks);
    b.op.src[2] = bed_cache(&b, f, s->v_dim, s->kv_heads, chunks);
    bed_fill_cache(&b.op.src[1], end);
    bed_fill_cache(&b.op.src[2], end);
    if (s->sinks)
        b.op.src[3] = bed_f32(&b, s->heads, 1);
    bed_out(&b, 0, (size_t)s->heads * s->v_dim, s->rows);
    b.truth = bed_alloc(&b, (end + 1) * sizeof(double));
    b.run = (struct op_run){.rows = s->rows, .pos = s->pos};
    return CHECK(b);
}

int cases_ATTENTION(int *ret_run)
{
    static const struct attention_shape shapes[] = {
        {"f16", 4, 2, 64, 64, 0, 0, false, false, 0, 1, 0},
        {"f16", 9, 3, 64, 64, 0, 0, false, false, 0, 40, 0},
        {"f16", 9, 3, 64, 64, 0, 0, false, false, 700, 1, 0},
        {"f16", 8, 1, 128, 128, 0, 0, false, false, 1000, 3, 0},
        {"f16", 16, 8, 128, 128, 0, 0, false, false, 250, 20, 0},
        {"f16", 4, 4, 80, 80, 0, 0, false, false, 260, 9, 0},
        {"f16", 5, 5, 40, 24, 0, 30.0f, false, false, 500, 14, 0},
        {"f16", 8, 2, 64, 64, 128, 0, true, false, 600, 30, 0},
        {"f16", 8, 2, 64, 64, 300, 0, true, false, 1300, 9, 3},
        {"f16", 64, 1, 64, 64, 1, 0, true, false, 255, 4, 0},
        {"f16", 8, 2, 64, 64, 16, 0, false, 2, 250, 40, 0},
        {"f16", 4, 4, 64, 64, 300, 0, true, 2, 590, 20, 0},
        {"f16", 4, 2, 64, 64, 0, 0, false, true, 0, 50, 0},
        {"f32", 6, 2, 96, 96, 0, 0, false, false, 255, 12, 0},
        {"f32", 2, 1, 72, 200, 100, 50.0f, true, false, 511, 2, 0},
        {"q8_0", 6, 3, 128, 128, 0, 0, false, false, 511, 11, 0},
        {"q8_0", 3, 1, 64, 96, 0, 0, true, false, 300, 1, 0},
        {"q4_0", 6, 3, 128, 128, 0, 0, false, false, 511, 11, 0},
        {"q4_0", 3, 1, 32, 64, 77, 0, false, false, 900, 4, 0},
    };
    int bad = 0;

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        bad += attention(&shapes[i], ret_run);
    return bad;
}

/* -- MOE ------------------------------------------------------------------------------------ */

static double bias_of(const struct op *op, int src, size_t expert, size_t i)
{
    return op->src[src].fmt ? (double)tensor_f32(&op->src[src], expert)[i] : 0.0;
}

/* Gate and up of a pair in double; the reference of the middle is not quantised. */
/* weight: of gate and up, where they have it */
static void moe_middle(const struct bed *b, size_t r, size_t expert, double weight, double *mid)
{
    const struct op *op = &b->op;

    for (size_t i = 0; i < op->src[3].n[1]; i++) {
        double g = dot(&op->src[3], expert, i, op->p.moe.in_act, &op->src[0], r);
        double u = dot(&op->src[4], expert, i, op->p.moe.in_act, &op->src[0], r);

        g += bias_of(op, 6, expert, i);
        u += bias_of(op, 7, expert, i);
        g *= weight;
        u *= weight;
        if (op->p.moe.act == OP_ACT_CLAMPED) {
            g = fmin(g, 7.0);
            mid[i] = g / (1 + exp(-1.702 * g)) * (fmax(-7.0, fmin(7.0, u)) + 1);
            continue;
        }
        mid[i] = g / (1 + exp(-g)) * u;
    }
}

static double want_moe(const struct bed *b, int o, size_t r, size_t i)
{
    const struct op *op = &b->op;
    size_t ff = op->src[3].n[1], used = op->p.moe.n_used;
    double sum = 0;

    (void)o;
    for (size_t k = 0; k < used; k++) {
        int32_t expert = ((const int32_t *)tensor_row(&op->src[1], r))[k];
        double *mid = b->truth + k * ff, y, weight = (double)tensor_f32(&op->src[2], r)[k];
        float down[MAX_N];

        if (i == 0)
            moe_middle(b, r, (size_t)expert, op->p.moe.weigh_first ? weight : 1.0, mid);
        op->src[5].fmt->to_f32((const char *)op->src[5].data +
                                   (size_t)expert * op->src[5].stride[2] + i * op->src[5].stride[1],
                               down, ff);
        y = bias_of(op, 8, (size_t)expert, i);
        for (size_t j = 0; j < ff; j++)
            y += (double)down[j] * mid[j];
        sum += op->p.moe.weigh_first ? y : y * weight;
    }
    return sum;
}

/* A single expert weighs what gate and up give.  Negative experts: as many, with biases and the clamped activation. */
static int moe(const char *in, const char *down, int n_expert, unsigned used, size_t rows,
               int *ret_run)
{
    unsigned experts = (unsigned)abs(n_expert);
    const struct format *f = format_of_name(in), *d = format_of_name(down);
    size_t width = 256, ff = 512;
    struct bed b = {.op = {.kind = OP_MOE}, .want = want_moe, .row_src = 7};

    snprintf(b.what, sizeof(b.what), "%s/%s, %u of %u, rows %zu%s", in, down, used, experts, rows,
             n_expert < 0 ? ", biases" : "");
    /* The middle is quantised by the op and not by the reference. */
    b.nmse = d->act == ACT_F32 ? 1e-10 : 1e-3;
    b.op.p.moe.n_expert = experts;
    b.op.p.moe.n_used = used;
    b.op.p.moe.weigh_first = used == 1;
    b.op.p.moe.act = n_expert < 0 ? OP_ACT_CLAMPED : OP_ACT_SILU;
    b.op.p.moe.in_act = f->act;
    b.op.p.moe.mid_act = d->act;
    b.op.src[0] = bed_act(&b, f->act, width, rows);
    b.op.src[1] = bed_f32(&b, used, rows);
    b.op.src[2] = bed_f32(&b, used, rows);
    for (size_t r = 0; r < rows; r++) {
        int32_t *ids = tensor_row(&b.op.src[1], r);

        /* Different ones, and some experts more wanted than others. */
        for (unsigned k = 0; k < used; k++)
            ids[k] = (int32_t)((bed_random() % 2 * (bed_random() % experts) + k) % experts);
        for (unsigned k = 0; k < used; k++)
            for (unsigned j = 0; j < k; j++)
                if (ids[k] == ids[j]) {
                    ids[k] = (ids[k] + 1) % (int32_t)experts;
                    j = UINT32_MAX;
                }
    }
    b.op.src[3] = bed_weights(&b, f, width, ff, experts);
    b.op.src[4] = bed_weights(&b, f, width, ff, experts);
    b.op.src[5] = bed_weights(&b, d, ff, width, experts);
    for (int i = 0; i < 3 && n_expert < 0; i++)
        b.op.src[6 + i] = bed_f32(&b, i == 2 ? width : ff, experts);
    bed_out(&b, 0, width, rows);
    b.truth = bed_alloc(&b, used * ff * sizeof(double));
    b.run.rows = rows;
    return CHECK(b);
}

int cases_MOE(int *ret_run)
{
    int bad = 0;

    bad += moe("q4_k", "q6_k", 8, 2, 1, ret_run);
    bad += moe("q4_k", "q6_k", 8, 2, 9, ret_run);
    bad += moe("q4_k", "q4_k", 4, 2, 25, ret_run);
    bad += moe("q8_0", "q8_0", 5, 3, 17, ret_run);
    bad += moe("mxfp4", "mxfp4", 6, 4, 11, ret_run);
    bad += moe("mxfp4", "mxfp4", -8, 2, 1, ret_run);
    bad += moe("mxfp4", "mxfp4", -4, 2, 19, ret_run);
    bad += moe("f16", "f32", -3, 2, 5, ret_run);
    bad += moe("f16", "f32", 3, 1, 7, ret_run);
    bad += moe("q4_k", "q4_k", 3, 1, 14, ret_run);
    bad += moe("q4_k", "q8_0", 16, 8, 6, ret_run);
    return bad;
}
