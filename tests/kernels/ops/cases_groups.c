/* Beds of keys of groups, attention to them, and hyper-connections. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/cpu/kernels.h"
#include "tests/kernels/ops/bed.h"
#include "tests/kernels/ops/caches.h"

#define CHECK(b) ((*ret_run)++, bed_check(&(b)))
#define MAX_DIM  128

static const char *const cache_formats[] = {"f32", "f16", "q8_0"};

/* -- COMPRESS --------------------------------------------------------------------------- */

/* Column of src0 (or of src1, score) at a position, which may be of the rows kept. */
static double group_input(const struct bed *b, bool score, size_t pos, size_t column)
{
    const struct op_compress_params *p = &b->op.p.compress;
    const struct tensor *kept = &b->state[0];
    size_t width = (size_t)p->dim * (p->overlap ? 2 : 1);

    if (pos >= b->run.pos)
        return bed_src(b, score, pos - b->run.pos, column);
    return (double)((const float *)b->initial[0])[pos % kept->n[1] * kept->n[0] + p->column +
                                                  score * width + column];
}

/* Value d of the mean of a group. */
static double group_mean(const struct bed *b, size_t j, size_t d)
{
    const struct op_compress_params *p = &b->op.p.compress;
    size_t first = j * p->group, from = p->overlap && j ? first - p->group : first;
    double sum = 0, value = 0;

    for (size_t pos = from; pos < first + p->group; pos++) {
        size_t column = d + (p->overlap && pos >= first ? p->dim : 0);
        double w = exp(group_input(b, true, pos, column) + bed_src(b, 2, pos % p->group, column));

        sum += w;
        value += w * group_input(b, false, pos, column);
    }
    return value / sum;
}

/* The key of a group: normed, its last values turned by its first position. */
static void group_key(const struct bed *b, size_t j, double *key)
{
    const struct op_compress_params *p = &b->op.p.compress;
    size_t n_rot = p->rope.n_dims, at = p->dim - n_rot;
    double sum = 0;

    for (size_t d = 0; d < p->dim; d++) {
        key[d] = group_mean(b, j, d);
        sum += key[d] * key[d];
    }
    for (size_t d = 0; d < p->dim; d++)
        key[d] *= bed_vec(b, 3, d) / sqrt(sum / p->dim + (double)p->eps);
    for (size_t i = 0; i < n_rot / 2; i++) {
        double angle =
            (double)(j * p->group) * pow((double)p->rope.base, -2.0 * (double)i / (double)n_rot);
        double x = key[at + 2 * i], y = key[at + 2 * i + 1];

        key[at + 2 * i] = x * cos(angle) - y * sin(angle);
        key[at + 2 * i + 1] = x * sin(angle) + y * cos(angle);
    }
}

/* Keys of the groups that the batch completes, one after another. */
static double want_keys(const struct bed *b, int o, size_t r, size_t i)
{
    (void)o;
    if (i % b->op.p.compress.dim == 0)
        group_key(b, b->run.pos / b->op.p.compress.group + r, b->truth);
    return b->truth[i];
}

struct group_shape {
    size_t pos, rows;
    unsigned group, dim, n_rot, column;
    bool overlap;
};

static int compress(const struct group_shape *s, int *ret_run)
{
    struct bed b = {.op = {.kind = OP_COMPRESS}, .nmse = 1e-11, .want = want_keys, .row_src = 3};
    struct op_compress_params *p = &b.op.p.compress;
    size_t width = (size_t)s->dim * (s->overlap ? 2 : 1);
    size_t first = s->pos / s->group, end = (s->pos + s->rows) / s->group;

    snprintf(b.what, sizeof(b.what), "groups of %u, keys of %u, rows %zu to %zu%s", s->group,
             s->dim, s->pos, s->pos + s->rows, s->overlap ? ", overlapping" : "");
    *p = (struct op_compress_params){.rope = {.n_dims = s->n_rot,
                                              .base = 10000,
                                              .freq_scale = 1,
                                              .attn_factor = 1,
                                              .beta_fast = 32,
                                              .beta_slow = 1,
                                              .n_ctx_orig = 4096},
                                     .group = s->group,
                                     .dim = s->dim,
                                     .column = s->column,
                                     .overlap = s->overlap,
                                     .eps = 0.01f};
    b.op.src[0] = bed_f32(&b, width, s->rows);
    b.op.src[1] = bed_f32(&b, width, s->rows);
    b.op.src[2] = bed_f32(&b, width, s->group);
    b.op.src[3] = bed_f32(&b, s->dim, 1);
    b.op.src[4] =
        bed_state(&b, s->column + 2 * width, (size_t)s->group * (s->overlap ? 2 : 1), 1, 1);
    b.op.src[5] = bed_cache(&b, format_of(FORMAT_f32), s->dim, 1, end / OP_KV_CHUNK + 1);
    b.run = (struct op_run){.rows = s->rows, .pos = s->pos};
    b.truth = bed_alloc(&b, s->dim * sizeof(double));
    if (end > first) {
        b.out[0] = tensor_make(format_of(FORMAT_f32), bed_slot(&b.op.src[5], 0, first), s->dim,
                               end - first, 1, 1);
        b.n_out = 1;
    }
    return CHECK(b);
}

int cases_COMPRESS(int *ret_run)
{
    static const struct group_shape shapes[] = {
        {0, 40, 4, 32, 8, 0, true},     {3, 1, 4, 32, 8, 0, true},
        {10, 30, 4, 64, 64, 7, true},   {0, 130, 128, 48, 16, 0, false},
        {100, 50, 16, 33, 8, 5, false}, {5, 2, 16, 32, 8, 0, false}};
    int bad = 0;

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        bad += compress(&shapes[i], ret_run);
    return bad;
}

/* -- NEAR_FAR --------------------------------------------------------------------------- */

/* The key that a row sees as its i-th, near ones first, to `row`; false when there is none. */
static bool seen_key(const struct bed *b, size_t r, size_t i, float *row)
{
    const struct op *op = &b->op;
    size_t at = b->run.pos + r + 1, window = op->p.attention.window;
    size_t near = at < window ? at : window, far = at / op->p.attention.group;
    const void *slot;

    if (op->src[4].fmt && far > op->src[4].n[0])
        far = op->src[4].n[0];
    if (i >= near + far)
        return false;
    if (i < near)
        slot = bed_slot(&op->src[1], 0, at - near + i);
    else if (op->src[4].fmt)
        slot = bed_slot(&op->src[2], 0, (size_t)((int32_t *)tensor_row(&op->src[4], r))[i - near]);
    else
        slot = bed_slot(&op->src[2], 0, i - near);
    op->src[1].fmt->to_f32(slot, row, op->p.attention.head_dim);
    return true;
}

static double want_near_far(const struct bed *b, int o, size_t r, size_t i)
{
    size_t dim = b->op.p.attention.head_dim, head = i / dim, n = 0;
    double max = -INFINITY, sum = 0, value = 0;
    float row[MAX_DIM];

    (void)o;
    for (; seen_key(b, r, n, row); n++) {
        double s = 0;

        for (size_t d = 0; d < dim; d++)
            s += bed_src(b, 0, r, head * dim + d) * (double)row[d];
        b->truth[n] = s * (double)b->op.p.attention.scale;
        max = fmax(max, b->truth[n]);
    }
    for (size_t k = 0; k < n; k++) {
        seen_key(b, r, k, row);
        sum += exp(b->truth[k] - max);
        value += exp(b->truth[k] - max) * (double)row[i % dim];
    }
    if (b->op.src[3].fmt)
        sum += exp(bed_vec(b, 3, head) - max);
    return value / sum;
}

struct near_far_shape {
    size_t pos, rows, top_k; /* 0: no list */
    unsigned heads, dim, window, group;
    bool sinks;
};

/* Ascending groups of those that a row sees. */
static void fill_groups(const struct bed *b)
{
    size_t top_k = b->op.src[4].n[0];

    for (size_t r = 0; r < b->run.rows; r++) {
        int32_t *list = tensor_row(&b->op.src[4], r);
        size_t n = (b->run.pos + r + 1) / b->op.p.attention.group, left = n < top_k ? n : top_k;

        for (size_t i = 0; i < n; i++)
            if (bed_random() % (n - i) < left) {
                *list++ = (int32_t)i;
                left--;
            }
    }
}

static int near_far(const struct near_far_shape *s, const struct format *fmt, int *ret_run)
{
    struct bed b = {
        .op = {.kind = OP_NEAR_FAR}, .nmse = 1e-10, .want = want_near_far, .row_src = 1};
    size_t end = s->pos + s->rows;

    snprintf(b.what, sizeof(b.what),
             "%s %u heads of %u, window %u, groups of %u, %zu of them, %zu+%zu", fmt->name,
             s->heads, s->dim, s->window, s->group, s->top_k, s->pos, s->rows);
    b.op.p.attention.n_heads = s->heads;
    b.op.p.attention.n_kv_heads = 1;
    b.op.p.attention.head_dim = b.op.p.attention.v_dim = s->dim;
    b.op.p.attention.window = s->window;
    b.op.p.attention.group = s->group;
    b.op.p.attention.scale = 0.125f;
    b.run = (struct op_run){.rows = s->rows, .pos = s->pos};
    b.op.src[0] = bed_f32(&b, (size_t)s->heads * s->dim, s->rows);
    b.op.src[1] = bed_cache(&b, fmt, s->dim, 1, (s->window + s->rows) / OP_KV_CHUNK + 2);
    b.op.src[2] = bed_cache(&b, fmt, s->dim, 1, end / s->group / OP_KV_CHUNK + 1);
    bed_fill_cache(&b.op.src[1], end);
    bed_fill_cache(&b.op.src[2], end / s->group);
    if (s->sinks)
        b.op.src[3] = bed_f32(&b, s->heads, 1);
    if (s->top_k) {
        b.op.src[4] = bed_f32(&b, s->top_k, s->rows);
        b.row_src |= 16;
        fill_groups(&b);
    }
    bed_out(&b, 0, (size_t)s->heads * s->dim, s->rows);
    b.truth = bed_alloc(&b, (s->window + end / s->group + 1) * sizeof(double));
    return CHECK(b);
}

int cases_NEAR_FAR(int *ret_run)
{
    static const struct near_far_shape shapes[] = {{0, 40, 5, 4, 64, 16, 4, true},
                                                   {1500, 1, 300, 9, 32, 128, 4, true},
                                                   {1300, 3, 0, 4, 96, 300, 4, false},
                                                   {250, 12, 0, 2, 32, 16, 128, true},
                                                   {2, 1, 8, 3, 32, 7, 4, false}};
    int bad = 0;

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        for (size_t f = 0; f < sizeof(cache_formats) / sizeof(cache_formats[0]); f++)
            bad += near_far(&shapes[i], format_of_name(cache_formats[f]), ret_run);
    return bad;
}

/* -- HYPER_MIX, HYPER_IN, HYPER_OUT ---------------------------------------------------- */

/* Rows from, then columns to: shares of each row, then of each column, n_iter times. */
static void truth_matrix(const struct bed *b, size_t r, double *m)
{
    size_t n = b->op.p.hyper.n;
    double eps = (double)b->op.p.hyper.eps, sum;

    for (size_t i = 0; i < n * n; i++)
        m[i] = exp(bed_src(b, 0, r, 2 * n + i) * bed_vec(b, 1, 2) + bed_vec(b, 2, 2 * n + i));
    for (unsigned k = 0; k < b->op.p.hyper.n_iter; k++) {
        for (size_t from = 0; from < n; from++) {
            sum = k ? eps : 0;
            for (size_t to = 0; to < n; to++)
                sum += m[from * n + to];
            for (size_t to = 0; to < n; to++)
                m[from * n + to] = m[from * n + to] / sum + (k ? 0 : eps);
        }
        for (size_t to = 0; to < n; to++) {
            sum = eps;
            for (size_t from = 0; from < n; from++)
                sum += m[from * n + to];
            for (size_t from = 0; from < n; from++)
                m[from * n + to] /= sum;
        }
    }
}

static double want_mix(const struct bed *b, int o, size_t r, size_t i)
{
    size_t n = b->op.p.hyper.n;

    (void)o;
    if (i < 2 * n) {
        double x = bed_sigmoid(bed_src(b, 0, r, i) * bed_vec(b, 1, i / n) + bed_vec(b, 2, i));

        return i < n ? x + (double)b->op.p.hyper.eps : 2 * x;
    }
    if (i == 2 * n)
        truth_matrix(b, r, b->truth);
    return b->truth[i - 2 * n];
}

int cases_HYPER_MIX(int *ret_run)
{
    static const unsigned shapes[][3] = {{4, 1, 20}, {4, 0, 1}, {2, 0, 3}, {8, 0, 20}, {1, 0, 2}};
    int bad = 0;

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct bed b = {
            .op = {.kind = OP_HYPER_MIX}, .nmse = 1e-11, .want = want_mix, .row_src = 1};
        size_t n = shapes[i][0], width = shapes[i][1] ? n : n * (n + 2);

        snprintf(b.what, sizeof(b.what), "%zu streams, %zu numbers, %u normings", n, width,
                 shapes[i][2]);
        b.op.p.hyper = (struct op_hyper_params){shapes[i][0], shapes[i][2], 0.001f};
        b.op.src[0] = bed_f32(&b, width, 7);
        b.op.src[1] = bed_f32(&b, width == n ? 1 : 3, 1);
        b.op.src[2] = bed_f32(&b, width, 1);
        bed_out(&b, 0, width, 7);
        b.run.rows = 7;
        b.truth = bed_alloc(&b, n * n * sizeof(double));
        bad += CHECK(b);
    }
    return bad;
}

static double want_in(const struct bed *b, int o, size_t r, size_t i)
{
    double sum = 0;

    (void)o;
    for (size_t s = 0; s < b->op.p.hyper.n; s++)
        sum += bed_src(b, 0, r, s * b->op.dst[0].n[0] + i) * bed_src(b, 1, r, s);
    return sum;
}

int cases_HYPER_IN(int *ret_run)
{
    struct bed b = {.op = {.kind = OP_HYPER_IN}, .nmse = 1e-12, .want = want_in, .row_src = 3};

    snprintf(b.what, sizeof(b.what), "4 streams of 77");
    b.op.p.hyper.n = 4;
    b.op.src[0] = bed_f32(&b, 4 * 77, 9);
    b.op.src[1] = bed_f32(&b, 24, 9);
    bed_out(&b, 0, 77, 9);
    b.run.rows = 9;
    return CHECK(b);
}

static double want_out(const struct bed *b, int o, size_t r, size_t i)
{
    size_t n = b->op.p.hyper.n, width = b->op.src[1].n[0], to = i / width;
    double sum = bed_src(b, 1, r, i % width) * bed_src(b, 2, r, n + to);

    (void)o;
    for (size_t from = 0; from < n; from++)
        sum += bed_src(b, 0, r, from * width + i % width) * bed_src(b, 2, r, 2 * n + from * n + to);
    return sum;
}

int cases_HYPER_OUT(int *ret_run)
{
    struct bed b = {.op = {.kind = OP_HYPER_OUT}, .nmse = 1e-12, .want = want_out, .row_src = 7};

    snprintf(b.what, sizeof(b.what), "4 streams of 50");
    b.op.p.hyper.n = 4;
    b.op.src[0] = bed_f32(&b, 200, 9);
    b.op.src[1] = bed_f32(&b, 50, 9);
    b.op.src[2] = bed_f32(&b, 24, 9);
    bed_out(&b, 0, 200, 9);
    b.run.rows = 9;
    return CHECK(b);
}
