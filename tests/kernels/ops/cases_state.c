/* Beds of the ops of recurrent layers: what a batch leaves is what the next one begins with. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/ops/bed.h"

#define CHECK(b) ((*ret_run)++, bed_check(&(b)))

/* -- CONV ------------------------------------------------------------------------------ */

/* Input of column i, `back` rows before row r. */
static double conv_input(const struct bed *b, size_t r, size_t back, size_t i)
{
    const struct tensor *kept = &b->state[0];

    if (back <= r)
        return bed_src(b, 0, r - back, i);
    return (
        double)((const float *)
                    b->initial[0])[(kept->n[1] + r - back) * kept->n[0] + b->op.p.conv.column + i];
}

static double want_conv(const struct bed *b, int o, size_t r, size_t i)
{
    size_t taps = b->op.src[1].n[0];
    double sum;

    for (int d = 0; d < o; d++)
        i += b->op.dst[d].n[0];
    sum = b->op.src[2].fmt ? bed_vec(b, 2, i) : 0;
    for (size_t j = 0; j < taps; j++)
        sum += bed_src(b, 1, i, j) * conv_input(b, r, taps - 1 - j, i);
    return b->op.p.conv.silu ? sum * bed_sigmoid(sum) : sum;
}

static int conv(size_t taps, const size_t *widths, int n, unsigned column, bool bias, size_t rows,
                int *ret_run)
{
    struct bed b = {.op = {.kind = OP_CONV}, .nmse = 1e-12, .want = want_conv, .row_src = 1};
    size_t sum = 0;

    for (int i = 0; i < n; i++) {
        sum += widths[i];
        bed_out(&b, i, widths[i], rows);
    }
    snprintf(b.what, sizeof(b.what), "%zu taps of %zu columns from %u, rows=%zu%s", taps, sum,
             column, rows, bias ? ", bias" : "");
    b.op.p.conv.silu = n > 1;
    b.op.p.conv.column = column;
    b.op.src[0] = bed_f32(&b, sum, rows);
    b.op.src[1] = bed_f32(&b, taps, sum);
    if (bias)
        b.op.src[2] = bed_f32(&b, sum, 1);
    b.op.src[3] = bed_state(&b, column + sum + 3, taps - 1, 1, 1);
    b.run.rows = rows;
    return CHECK(b);
}

int cases_CONV(int *ret_run)
{
    static const size_t narrow[] = {33}, trio[] = {300, 17, 512}, pair[] = {256, 64};
    int bad = 0;

    bad += conv(4, trio, 3, 0, false, 1, ret_run);
    bad += conv(4, trio, 3, 5, true, 19, ret_run);
    bad += conv(3, narrow, 1, 0, false, 30, ret_run);
    bad += conv(2, pair, 2, 64, true, 8, ret_run);
    bad += conv(OP_CONV_TAPS, narrow, 1, 1, true, 9, ret_run);
    return bad;
}

/* -- DECAY ----------------------------------------------------------------------------- */

static double want_decay(const struct bed *b, int o, size_t r, size_t i)
{
    double x = log1p(exp(bed_src(b, 0, r, i) + (b->op.src[1].fmt ? bed_vec(b, 1, i) : 0)));

    return o ? exp(x * bed_vec(b, 2, i / (b->op.dst[0].n[0] / b->op.src[2].n[0]))) : x;
}

int cases_DECAY(int *ret_run)
{
    static const size_t shapes[][2] = {{32, 32}, {7, 7}, {1200, 4}, {64, 1}, {48, 0}};
    int bad = 0;

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct bed b = {.op = {.kind = OP_DECAY}, .nmse = 1e-12, .want = want_decay, .row_src = 1};
        size_t n = shapes[i][0];

        snprintf(b.what, sizeof(b.what), "%zu columns, %zu numbers", n, shapes[i][1]);
        b.op.src[0] = bed_f32(&b, n, 9);
        if (i != 3)
            b.op.src[1] = bed_f32(&b, n, 1);
        bed_out(&b, 0, n, 9);
        if (shapes[i][1]) {
            b.op.src[2] = bed_f32(&b, shapes[i][1], 1);
            for (size_t j = 0; j < shapes[i][1]; j++)
                ((float *)b.op.src[2].data)[j] = -fabsf(((float *)b.op.src[2].data)[j]);
            bed_out(&b, 1, n, 9);
        }
        b.run.rows = 9;
        bad += CHECK(b);
    }
    return bad;
}

/* -- DELTA ----------------------------------------------------------------------------- */

static double *state_at(const struct bed *b, double *state, size_t head, size_t row, size_t col)
{
    const struct tensor *t = &b->state[0];

    return &state[((head * t->n[2] + col / t->n[0]) * t->n[1] + row) * t->n[0] + col % t->n[0]];
}

/* One column of one head, all rows. */
static void delta_column(const struct bed *b, double *state, size_t h, size_t c)
{
    const struct op_delta_params *p = &b->op.p.delta;
    size_t kh = p->adjacent ? h / (p->n_heads / p->n_k_heads) : h % p->n_k_heads;
    size_t width = (size_t)p->n_heads * p->v_dim;
    bool each = b->op.src[3].n[0] != p->n_heads;

    for (size_t r = 0; r < b->run.rows; r++) {
        double seen = 0, out = 0, diff;

        for (size_t i = 0; i < p->k_dim; i++) {
            double *s = state_at(b, state, h, i, c);

            *s *= bed_src(b, 3, r, each ? h * p->k_dim + i : h);
            seen += *s * bed_src(b, 1, r, kh * p->k_dim + i) * (double)p->k_scale;
        }
        diff = bed_sigmoid(bed_src(b, 4, r, h)) * (bed_src(b, 2, r, h * p->v_dim + c) - seen);
        for (size_t i = 0; i < p->k_dim; i++) {
            double *s = state_at(b, state, h, i, c);

            *s += bed_src(b, 1, r, kh * p->k_dim + i) * (double)p->k_scale * diff;
            out += *s * bed_src(b, 0, r, kh * p->k_dim + i) * (double)p->q_scale;
        }
        b->truth[r * width + h * p->v_dim + c] = out;
    }
}

static double want_truth(const struct bed *b, int o, size_t r, size_t i)
{
    (void)o;
    return b->truth[r * b->op.dst[0].n[0] + i];
}

/* The initial state in double precision. */
static double *doubles_of_state(struct bed *b)
{
    size_t n = tensor_bytes(&b->state[0]) / sizeof(float);
    double *d = bed_alloc(b, n * sizeof(double));

    for (size_t i = 0; i < n; i++)
        d[i] = (double)((const float *)b->initial[0])[i];
    return d;
}

static int delta(const struct op_delta_params *p, bool each, size_t rows, int *ret_run)
{
    struct bed b = {.op = {.kind = OP_DELTA}, .nmse = 1e-11, .want = want_truth, .row_src = 0x1f};
    size_t blocks = (p->v_dim + OP_STATE_COLS - 1) / OP_STATE_COLS;
    float *decays;
    double *state;

    snprintf(b.what, sizeof(b.what), "%u heads on %u of %ux%u, rows=%zu%s", p->n_heads,
             p->n_k_heads, p->k_dim, p->v_dim, rows, each ? ", a decay each" : "");
    b.op.p.delta = *p;
    b.op.src[0] = bed_f32(&b, (size_t)p->n_k_heads * p->k_dim, rows);
    b.op.src[1] = bed_f32(&b, (size_t)p->n_k_heads * p->k_dim, rows);
    b.op.src[2] = bed_f32(&b, (size_t)p->n_heads * p->v_dim, rows);
    b.op.src[3] = bed_f32(&b, (size_t)p->n_heads * (each ? p->k_dim : 1), rows);
    b.op.src[4] = bed_f32(&b, p->n_heads, rows);
    b.op.src[5] = bed_state(&b, OP_STATE_COLS, p->k_dim, blocks, p->n_heads);
    decays = b.op.src[3].data;
    for (size_t i = 0; i < b.op.src[3].n[0] * rows; i++)
        decays[i] = expf(-fabsf(decays[i]));
    bed_out(&b, 0, (size_t)p->n_heads * p->v_dim, rows);
    b.run.rows = rows;
    b.truth = bed_alloc(&b, b.op.dst[0].n[0] * rows * sizeof(double));
    state = doubles_of_state(&b);
    for (size_t h = 0; h < p->n_heads; h++)
        for (size_t c = 0; c < p->v_dim; c++)
            delta_column(&b, state, h, c);
    return CHECK(b);
}

int cases_DELTA(int *ret_run)
{
    static const struct op_delta_params shapes[] = {
        {4, 2, false, 16, 16, 1.0f / 16, 0.25f},
        {4, 2, true, 128, 128, 1.0f / 128, 0.09f},
        {3, 3, false, 33, 20, 0.03f, 0.17f},
        {5, 1, true, 64, 7, 0.02f, 0.125f},
    };
    int bad = 0;

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        for (int each = 0; each < 2; each++) {
            bad += delta(&shapes[i], each, 1, ret_run);
            bad += delta(&shapes[i], each, 17, ret_run);
        }
    return bad;
}

/* -- SSM ------------------------------------------------------------------------------- */

static void ssm_column(const struct bed *b, double *state, size_t h, size_t c)
{
    const struct op_ssm_params *p = &b->op.p.ssm;
    size_t at = h * p->head_dim + c, group = h / (p->n_heads / p->n_groups);

    for (size_t r = 0; r < b->run.rows; r++) {
        double dt = bed_src(b, 3, r, p->each ? c : h), x = bed_src(b, 0, r, at);
        double y = x * bed_vec(b, 5, p->each ? c : h);

        for (size_t i = 0; i < p->n_state; i++) {
            double *s = state_at(b, state, h, i, c);

            *s *= p->each ? exp(dt * bed_src(b, 4, c, i)) : bed_src(b, 4, r, h);
            *s += bed_src(b, 1, r, group * p->n_state + i) * x * dt;
            y += *s * bed_src(b, 2, r, group * p->n_state + i);
        }
        b->truth[r * b->op.dst[0].n[0] + at] = y;
    }
}

/* Numbers that make a state forget: negative, or decays below 1. */
static void forgetful(struct tensor *t, bool negative)
{
    float *x = t->data;

    for (size_t i = 0; i < t->n[0] * t->n[1]; i++)
        x[i] = negative ? -fabsf(x[i]) : expf(-fabsf(x[i]));
}

static int ssm(const struct op_ssm_params *p, size_t rows, int *ret_run)
{
    struct bed b = {.op = {.kind = OP_SSM}, .nmse = 1e-11, .want = want_truth, .row_src = 0x0f};
    size_t blocks = (p->head_dim + OP_STATE_COLS - 1) / OP_STATE_COLS;
    size_t width = (size_t)p->n_heads * p->head_dim, ins = (size_t)p->n_groups * p->n_state;
    size_t steps = p->each ? p->head_dim : p->n_heads;
    double *state;

    snprintf(b.what, sizeof(b.what), "%u heads on %u of %ux%u, rows=%zu%s", p->n_heads, p->n_groups,
             p->n_state, p->head_dim, rows, p->each ? ", a decay each" : "");
    b.op.p.ssm = *p;
    b.op.src[0] = bed_f32(&b, width, rows);
    b.op.src[1] = bed_f32(&b, ins, rows);
    b.op.src[2] = bed_f32(&b, ins, rows);
    b.op.src[3] = bed_f32(&b, steps, rows);
    b.op.src[4] = p->each ? bed_f32(&b, p->n_state, p->head_dim) : bed_f32(&b, p->n_heads, rows);
    b.op.src[5] = bed_f32(&b, steps, 1);
    b.op.src[6] = bed_state(&b, OP_STATE_COLS, p->n_state, blocks, p->n_heads);
    b.row_src |= p->each ? 0 : 0x10;
    for (size_t i = 0; i < steps * rows; i++)
        ((float *)b.op.src[3].data)[i] = fabsf(((float *)b.op.src[3].data)[i]);
    forgetful(&b.op.src[4], p->each);
    bed_out(&b, 0, width, rows);
    b.run.rows = rows;
    b.truth = bed_alloc(&b, width * rows * sizeof(double));
    state = doubles_of_state(&b);
    for (size_t h = 0; h < p->n_heads; h++)
        for (size_t c = 0; c < p->head_dim; c++)
            ssm_column(&b, state, h, c);
    return CHECK(b);
}

int cases_SSM(int *ret_run)
{
    static const struct op_ssm_params shapes[] = {{4, 2, 16, 16, false},
                                                  {8, 1, 64, 128, false},
                                                  {3, 3, 20, 33, false},
                                                  {1, 1, 200, 16, true},
                                                  {1, 1, 7, 5, true}};
    int bad = 0;

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        bad += ssm(&shapes[i], 1, ret_run);
        bad += ssm(&shapes[i], 17, ret_run);
    }
    return bad;
}

/* -- WKV ------------------------------------------------------------------------------- */

/* What a head makes of a row, in the paper's own terms. */
struct wkv_row {
    double decay, key, removed, rate;
};

static double wkv_length(const struct bed *b, size_t r, size_t head)
{
    size_t n = b->op.p.wkv.head_dim;
    double sum = 0;

    for (size_t i = head * n; i < (head + 1) * n; i++)
        sum += pow(bed_src(b, 2, r, i) * bed_vec(b, 5, i), 2);
    return sqrt(sum);
}

static struct wkv_row wkv_row(const struct bed *b, size_t r, size_t i, double length)
{
    double k = bed_src(b, 2, r, i), rate = bed_sigmoid(bed_src(b, 4, r, i));

    return (struct wkv_row){.decay = exp(-exp(-0.5) * bed_sigmoid(bed_src(b, 1, r, i))),
                            .key = k * (1 + (rate - 1) * bed_vec(b, 6, i)),
                            .removed = k * bed_vec(b, 5, i) / length,
                            .rate = rate};
}

/* S = S diag(decay) - (S removed) (rate * removed)^T + v key^T, for one column. */
static void wkv_column(const struct bed *b, double *state, size_t h, size_t c)
{
    size_t n = b->op.p.wkv.head_dim, width = b->op.dst[0].n[0], at = h * n + c;

    for (size_t r = 0; r < b->run.rows; r++) {
        double length = wkv_length(b, r, h), seen = 0, out = 0, bonus = 0;

        for (size_t i = 0; i < n; i++)
            seen += *state_at(b, state, h, i, c) * wkv_row(b, r, h * n + i, length).removed;
        for (size_t i = 0; i < n; i++) {
            struct wkv_row w = wkv_row(b, r, h * n + i, length);
            double *s = state_at(b, state, h, i, c);

            *s = *s * w.decay - seen * w.rate * w.removed + bed_src(b, 3, r, at) * w.key;
            out += *s * bed_src(b, 0, r, h * n + i);
            bonus += w.key * bed_src(b, 0, r, h * n + i) * bed_vec(b, 7, h * n + i);
        }
        b->truth[r * width + at] = out;
        b->truth[(b->run.rows + r) * width + at] = bed_src(b, 3, r, at) * bonus;
    }
}

static double want_both(const struct bed *b, int o, size_t r, size_t i)
{
    return b->truth[((size_t)o * b->run.rows + r) * b->op.dst[0].n[0] + i];
}

static int wkv(size_t heads, size_t dim, size_t rows, int *ret_run)
{
    struct bed b = {.op = {.kind = OP_WKV}, .nmse = 1e-11, .want = want_both, .row_src = 0x1f};
    size_t width = heads * dim;
    double *state;

    snprintf(b.what, sizeof(b.what), "%zu heads of %zu, rows=%zu", heads, dim, rows);
    b.op.p.wkv.n_heads = (unsigned)heads;
    b.op.p.wkv.head_dim = (unsigned)dim;
    for (int i = 0; i < 8; i++)
        b.op.src[i] = bed_f32(&b, width, i < 5 ? rows : 1);
    b.op.src[8] =
        bed_state(&b, OP_STATE_COLS, dim, (dim + OP_STATE_COLS - 1) / OP_STATE_COLS, heads);
    bed_out(&b, 0, width, rows);
    bed_out(&b, 1, width, rows);
    b.run.rows = rows;
    b.truth = bed_alloc(&b, 2 * width * rows * sizeof(double));
    state = doubles_of_state(&b);
    for (size_t h = 0; h < heads; h++)
        for (size_t c = 0; c < dim; c++)
            wkv_column(&b, state, h, c);
    return CHECK(b);
}

int cases_WKV(int *ret_run)
{
    static const size_t shapes[][2] = {{3, 64}, {2, 16}, {1, 33}, {5, 8}};
    int bad = 0;

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        bad += wkv(shapes[i][0], shapes[i][1], 1, ret_run);
        bad += wkv(shapes[i][0], shapes[i][1], 13, ret_run);
    }
    return bad;
}

/* -- SHIFT ----------------------------------------------------------------------------- */

static double want_shift(const struct bed *b, int o, size_t r, size_t i)
{
    (void)o;
    return r ? bed_src(b, 0, r - 1, i)
             : (double)((const float *)b->initial[0])[b->op.p.shift.column + i];
}

int cases_SHIFT(int *ret_run)
{
    static const size_t shapes[][3] = {{64, 0, 1}, {33, 33, 9}, {200, 7, 30}};
    int bad = 0;

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct bed b = {.op = {.kind = OP_SHIFT}, .want = want_shift, .row_src = 1};
        size_t n = shapes[i][0], column = shapes[i][1], rows = shapes[i][2];

        snprintf(b.what, sizeof(b.what), "%zu columns from %zu, rows=%zu", n, column, rows);
        b.op.p.shift.column = (unsigned)column;
        b.op.src[0] = bed_f32(&b, n, rows);
        b.op.src[1] = bed_state(&b, column + n + 3, 1, 1, 1);
        bed_out(&b, 0, n, rows);
        b.run.rows = rows;
        bad += CHECK(b);
    }
    return bad;
}
