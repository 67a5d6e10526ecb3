/* Measuring the kernels and keeping the figures.  See gauge.h. */

#include "daemon/memory/gauge.h"

#include <stdlib.h>
#include <string.h>

#include "backends/formats/act.h"
#include "common/alloc.h"
#include "common/clock.h"
#include "daemon/memory/gauge_priv.h"

_Static_assert(FORMAT_COUNT <= 64, "formats are told by the bits of a number");

#define WIDTH                 ((size_t)2048) /* a matrix, as models of some billions have them */
#define HEIGHT                ((size_t)1024)
#define ORDINARY              0x3c /* 1.06 as f16, 0.01 as f32 and bf16, 2^-67 as an exponent alone */
#define HEADS                 ((size_t)16)
#define KV_HEADS              ((size_t)8)
#define HEAD_DIM              ((size_t)128)
#define DEPTH                 ((size_t)512) /* positions before the first row */
#define KV_CHUNKS             3             /* of them and of GAUGE_ROWS_MAX more */
#define SMALL_OPS             ((size_t)100)
#define SMALL_SCRATCH         ((size_t)4 << 20) /* what they are given of it */
#define EXPERTS_ROWS_BYTES    ((size_t)16 << 20)
#define EXPERTS_SCRATCH_BYTES ((size_t)48 << 20) /* 256 rows of 2048 by 8 experts each */
#define SLIVER                ((size_t)32)       /* rows of a product that is all waiting */
#define AT_ONCE               ((size_t)8)        /* matrices of a run at one row */
#define RUNS_MIN              2
#define RUNS_MAX              200
#define ENOUGH_US             25000 /* of one point in one turn */

const size_t gauge_rows[GAUGE_POINTS] = {1, 8, 32, GAUGE_ROWS_MAX};

/* Of a product; experts have wider rows, and sums for each expert that a row chose. */
static size_t rows_bytes(const struct gauge_wants *w)
{
    return w->n_mixtures ? EXPERTS_ROWS_BYTES : GAUGE_ROWS_MAX * 2 * WIDTH * sizeof(float);
}

static size_t scratch_bytes(const struct gauge_wants *w)
{
    return w->n_mixtures ? EXPERTS_SCRATCH_BYTES : 4 * rows_bytes(w);
}

static size_t weights_bytes(const struct gauge_wants *w)
{
    return MAX(w->weights_bytes, GAUGE_WEIGHTS_LEAST);
}

size_t gauge_staging_bytes(const struct gauge_wants *w)
{
    return alloc_page_round(weights_bytes(w)) + alloc_page_round(rows_bytes(w)) +
           alloc_page_round(scratch_bytes(w)) + alloc_page_round(GAUGE_OPS_MAX * sizeof(struct op));
}

static struct op product(const struct gauge_bench *b, const struct format *f, size_t at)
{
    struct op op = {.kind = OP_MATMUL};

    op.p.matmul.n_weights = 1;
    op.p.matmul.act = f->act;
    op.src[0] = tensor_make(format_of(FORMAT_f32), b->rows, WIDTH, GAUGE_ROWS_MAX, 1, 1);
    op.src[0].stride[1] = act_row_bytes(f->act, WIDTH);
    op.src[1] = tensor_make(f, b->weights + at, WIDTH, HEIGHT, 1, 1);
    op.dst[0] = tensor_make(format_of(FORMAT_f32), b->rows + GAUGE_ROWS_MAX * WIDTH * sizeof(float),
                            HEIGHT, GAUGE_ROWS_MAX, 1, 1);
    return op;
}

int gauge_time_ops(const struct gauge_bench *b, const struct op *ops, size_t n, size_t at_once,
                   size_t rows, size_t pos, double *ret_s, struct err *err)
{
    struct op_run run = {.rows = rows, .pos = pos, .n_out = rows};
    int64_t spent = 0;
    size_t at = 0, done = 0;

    for (int i = 0; i < RUNS_MAX && (i < RUNS_MIN || spent < ENOUGH_US); i++) {
        int64_t t0 = clock_us();
        int r = b->ops->run(b->be, ops + at, at_once, &run, b->scratch, err);

        if (r < 0)
            return r;
        if (i) { /* the first one meets cold code */
            spent += clock_us() - t0;
            done += at_once;
        }
        at += at_once;
        if (at + at_once > n)
            at = 0;
    }
    *ret_s = (double)MAX(spent, (int64_t)1) / 1e6 / (double)MAX(done, (size_t)1);
    return 0;
}

static int measure_format(struct gauge *g, const struct gauge_bench *b, enum format_id id,
                          struct err *err)
{
    const struct format *f = format_of(id);
    size_t bytes = format_row_bytes(f, WIDTH) * HEIGHT;
    size_t most = MIN(b->weights_bytes / alloc_page_round(bytes), GAUGE_OPS_MAX);
    struct op *ops = b->list;
    int r = 0;

    for (size_t i = 0; i < most; i++)
        ops[i] = product(b, f, i * alloc_page_round(bytes));
    if (!most || !b->ops->can(b->be, &ops[0]) ||
        b->ops->scratch_bytes(b->be, &ops[0], GAUGE_ROWS_MAX) > b->scratch_bytes)
        return 0;
    for (int p = 0; p < GAUGE_POINTS && r >= 0; p++) {
        size_t at_once = MIN(MAX(AT_ONCE / gauge_rows[p], (size_t)1), most);
        double s = 0;

        r = gauge_time_ops(b, ops, most, at_once, gauge_rows[p], 0, &s, err);
        g->seconds[id][p] = s / (double)bytes;
    }
    g->known[id] = r >= 0;
    return r;
}

static struct op attention(const struct gauge_bench *b, const struct format *f, size_t at)
{
    const struct format *f32 = format_of(FORMAT_f32);
    size_t half = format_row_bytes(f, HEAD_DIM) * OP_KV_CHUNK * KV_HEADS * KV_CHUNKS;
    struct op op = {.kind = OP_ATTENTION};

    op.p.attention.n_heads = (unsigned)HEADS;
    op.p.attention.n_kv_heads = (unsigned)KV_HEADS;
    op.p.attention.head_dim = op.p.attention.v_dim = (unsigned)HEAD_DIM;
    op.p.attention.scale = 0.1F;
    op.src[0] = tensor_make(f32, b->rows, HEAD_DIM * HEADS, GAUGE_ROWS_MAX, 1, 1);
    op.src[1] = tensor_make(f, b->weights + at, HEAD_DIM, OP_KV_CHUNK, KV_HEADS, KV_CHUNKS);
    op.src[2] = tensor_make(f, b->weights + at + half, HEAD_DIM, OP_KV_CHUNK, KV_HEADS, KV_CHUNKS);
    op.dst[0] = tensor_make(f32, b->rows + GAUGE_ROWS_MAX * WIDTH * sizeof(float), HEAD_DIM * HEADS,
                            GAUGE_ROWS_MAX, 1, 1);
    return op;
}

static int measure_attention(struct gauge *g, const struct gauge_bench *b, enum format_id id,
                             struct err *err)
{
    const struct format *f = format_of(id);
    size_t position = 2 * format_row_bytes(f, HEAD_DIM) * KV_HEADS;
    size_t cache = position * OP_KV_CHUNK * KV_CHUNKS;
    size_t most = MIN(b->weights_bytes / alloc_page_round(cache), GAUGE_OPS_MAX);
    size_t middle = DEPTH + GAUGE_ROWS_MAX / 2; /* positions that a row of many sees */
    double one = 0, many = 0, group = (double)HEADS / (double)KV_HEADS;
    struct op *ops = b->list;
    int r;

    for (size_t i = 0; i < most; i++)
        ops[i] = attention(b, f, i * alloc_page_round(cache));
    if (!most || !b->ops->can(b->be, &ops[0]) ||
        b->ops->scratch_bytes(b->be, &ops[0], GAUGE_ROWS_MAX) > b->scratch_bytes)
        return 0;
    r = gauge_time_ops(b, ops, most, MIN(most, AT_ONCE), 1, DEPTH, &one, err);
    if (r >= 0)
        r = gauge_time_ops(b, ops, most, 1, GAUGE_ROWS_MAX, DEPTH, &many, err);
    if (r < 0)
        return r;
    one /= (double)(position * DEPTH);
    many /= (double)(position * middle);
    g->attention[id][1] = MAX(many - one, 0) / ((double)GAUGE_ROWS_MAX * group - group);
    g->attention[id][0] = MAX(one - g->attention[id][1] * (group - 1), one / 2);
    g->attends[id] = true;
    return 0;
}

/*
 * Operations as a layer has them around a product: a norm, its quantising, the
 * product (of a sliver of weights, for the threads to meet at) and a sum.
 */
static size_t small_ops(const struct gauge_bench *b, bool product_too, struct op ret[4])
{
    const struct format *f32 = format_of(FORMAT_f32), *q8 = format_of(FORMAT_q8_0);
    size_t part = GAUGE_ROWS_MAX * WIDTH * sizeof(float), n = 0;
    char *at = (char *)b->scratch + SMALL_SCRATCH;
    struct tensor x = tensor_make(f32, at, WIDTH, GAUGE_ROWS_MAX, 1, 1), y = x, act = x, out = x;

    y.data = at + part;
    act.data = at + 2 * part;
    act.stride[1] = act_row_bytes(q8->act, WIDTH);
    out.data = at + 3 * part;
    out.n[0] = SLIVER;
    out.stride[1] = SLIVER * sizeof(float);
    ret[n] = (struct op){.kind = OP_RMSNORM, .src = {x, x}, .dst = {y}};
    ret[n].src[1].n[1] = 1;
    ret[n].p.rmsnorm.eps = 1e-6F;
    ret[n++].p.rmsnorm.group = WIDTH;
    ret[n] = (struct op){.kind = OP_QUANTIZE, .src = {y}, .dst = {act}};
    ret[n++].p.quantize.act = q8->act;
    if (product_too) {
        ret[n] = (struct op){.kind = OP_MATMUL, .src = {act}, .dst = {out}};
        ret[n].src[1] = tensor_make(q8, b->weights, WIDTH, SLIVER, 1, 1);
        ret[n].p.matmul.n_weights = 1;
        ret[n++].p.matmul.act = q8->act;
    }
    /* Not into x, whose first row stands for the weights of the norm: nobody writes those. */
    ret[n++] = (struct op){.kind = OP_ADD, .src = {x, y}, .dst = {y}};
    return n;
}

static int measure_ops(struct gauge *g, const struct gauge_bench *b, struct err *err)
{
    struct op ops[SMALL_OPS];
    double one = 0, many = 0, bytes = 0;
    size_t n;
    int r;

    for (size_t i = 0; i < SMALL_OPS; i += 4)
        small_ops(b, true, ops + i);
    r = gauge_time_ops(b, ops, SMALL_OPS, SMALL_OPS, 1, 0, &one, err);
    n = small_ops(b, false, ops);
    if (r >= 0)
        r = gauge_time_ops(b, ops, n, n, GAUGE_ROWS_MAX, 0, &many, err);
    if (r < 0)
        return r;
    /* of x six times in and out, and once as it is quantised */
    bytes = (double)GAUGE_ROWS_MAX *
            (double)(6 * WIDTH * sizeof(float) + act_row_bytes(format_of(FORMAT_q8_0)->act, WIDTH));
    g->op_s = one;
    g->row_byte_s = many * (double)n / bytes;
    return 0;
}

/* -- the door ---------------------------------------------------------------------------- */

bool gauge_lacks(const struct gauge *g, const struct gauge_wants *w)
{
    for (int id = 0; id < FORMAT_COUNT; id++)
        if (w->formats >> id & 1 && !g->known[id])
            return true;
    for (size_t i = 0; i < w->n_mixtures; i++)
        if (!gauge_find(g, &w->mixtures[i]))
            return true;
    return g->op_s <= 0 || !g->attends[w->cache];
}

static int goes_on(const struct gauge_wants *w, struct err *err)
{
    if (w->stop && w->stop(w->stop_arg))
        return err_set(err, ERR_CANCELLED, "measuring the kernels was broken off");
    return 0;
}

static int measure(struct gauge *g, const struct gauge_wants *w, const struct gauge_bench *b,
                   struct err *err)
{
    int r = g->op_s > 0 ? 0 : measure_ops(g, b, err);

    if (r >= 0)
        r = goes_on(w, err);
    if (r >= 0 && !g->attends[w->cache])
        r = measure_attention(g, b, w->cache, err);
    for (int id = 0; id < FORMAT_COUNT && r >= 0; id++) {
        if (!(w->formats >> id & 1) || g->known[id])
            continue;
        r = goes_on(w, err);
        if (r >= 0)
            r = measure_format(g, b, (enum format_id)id, err);
    }
    for (size_t i = 0; i < w->n_mixtures && r >= 0; i++) {
        if (gauge_find(g, &w->mixtures[i]))
            continue;
        r = goes_on(w, err);
        if (r >= 0)
            r = gauge_measure_mixture(g, b, &w->mixtures[i], err);
    }
    return r;
}

static double middle(double a, double b, double c)
{
    return MAX(MIN(a, b), MIN(MAX(a, b), c));
}

static void middles(double *ret, const double *a, const double *b, const double *c, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ret[i] = middle(a[i], b[i], c[i]);
}

void gauge_settle(struct gauge *g, const struct gauge turns[GAUGE_TURNS])
{
    const struct gauge *a = &turns[0], *b = &turns[1], *c = &turns[2];

    *g = *a;
    for (int id = 0; id < FORMAT_COUNT; id++) {
        middles(g->seconds[id], a->seconds[id], b->seconds[id], c->seconds[id], GAUGE_POINTS);
        middles(g->attention[id], a->attention[id], b->attention[id], c->attention[id], 2);
    }
    for (size_t i = 0; i < g->n_mixtures; i++)
        middles(g->experts[i].seconds, a->experts[i].seconds, b->experts[i].seconds,
                c->experts[i].seconds, GAUGE_POINTS);
    g->op_s = middle(a->op_s, b->op_s, c->op_s);
    g->row_byte_s = middle(a->row_byte_s, b->row_byte_s, c->row_byte_s);
}

/* All of it, and all of it again, so that a stall is not all of one figure's time. */
static int measure_in_turns(struct gauge *g, const struct gauge_wants *w,
                            const struct gauge_bench *b, struct err *err)
{
    struct gauge *turns = XNEW_ARRAY(struct gauge, GAUGE_TURNS);
    int r = 0;

    for (int i = 0; i < GAUGE_TURNS && r >= 0; i++) {
        turns[i] = *g;
        r = measure(&turns[i], w, b, err);
    }
    if (r >= 0)
        gauge_settle(g, turns);
    free(turns);
    return r;
}

int gauge_measure(struct gauge *g, const struct gauge_wants *w, const char *dir,
                  const struct backend_ops *ops, struct backend *be, struct err *err)
{
    struct gauge_bench b = {.ops = ops,
                            .be = be,
                            .list = XNEW_ARRAY(struct op, GAUGE_OPS_MAX),
                            .weights_bytes = weights_bytes(w),
                            .rows_bytes = rows_bytes(w),
                            .scratch_bytes = scratch_bytes(w)};
    int r = 0;

    b.weights = alloc_pages(b.weights_bytes, 1);
    b.rows = alloc_pages(b.rows_bytes, 1);
    b.scratch = alloc_pages(b.scratch_bytes, 1);
    if (!b.weights || !b.rows || !b.scratch)
        r = err_set(err, ERR_NOMEM, "the kernel has no %zu bytes to measure the kernels with",
                    gauge_staging_bytes(w));
    if (r >= 0) { /* pages of its own, and scales that are neither zero nor too small for a float */
        memset(b.weights, ORDINARY, b.weights_bytes);
        memset(b.rows, ORDINARY, b.rows_bytes);
        memset(b.scratch, 0, b.scratch_bytes);
        r = measure_in_turns(g, w, &b, err);
    }
    free(b.list);
    free_pages(b.weights, b.weights_bytes);
    free_pages(b.rows, b.rows_bytes);
    free_pages(b.scratch, b.scratch_bytes);
    if (r >= 0 && dir && *dir)
        gauge_save(g, dir);
    return r;
}

double gauge_seconds(const struct gauge *g, enum format_id f, double bytes, double rows)
{
    const double *s;
    int p;

    if (f >= FORMAT_COUNT || !g->known[f])
        return 0;
    s = g->seconds[f];
    for (p = 0; p < GAUGE_POINTS - 1; p++) {
        double from = (double)gauge_rows[p], to = (double)gauge_rows[p + 1];

        if (rows <= to)
            return bytes * (s[p] + (s[p + 1] - s[p]) * (MAX(rows, from) - from) / (to - from));
    }
    return bytes * s[p] * rows / (double)gauge_rows[p];
}

double gauge_attention_seconds(const struct gauge *g, enum format_id cache, double bytes,
                               double queries)
{
    if (cache >= FORMAT_COUNT || !g->attends[cache])
        return 0;
    return bytes * (g->attention[cache][0] + g->attention[cache][1] * MAX(queries - 1, 0.0));
}

double gauge_ram_rate(const struct gauge *g)
{
    double best = 0;

    for (int id = 0; id < FORMAT_COUNT; id++)
        if (g->known[id] && g->seconds[id][0] > 0)
            best = MAX(best, 1.0 / g->seconds[id][0]);
    return best;
}
