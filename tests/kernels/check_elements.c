/* Checkers of the f32 kernels and of attention; see check.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/check.h"

#define MAX_N 1100

static const size_t long_ones[] = {127, 128, 255, 576, 1000, 1024, MAX_N};

static void normals(float *x, size_t n, bool hostile)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = check_normal() * 3.0f;
        if (hostile && check_random() % 8 == 0)
            x[i] = (float[]){
                0.0f, -0.0f, 1e-40f, -88.7f, 89.5f, -104.5f, 1e30f, -1e30f}[check_random() % 8];
    }
}

/* Two inputs and an output between unreadable pages, and room for the twin's answer. */
struct lane {
    struct guard g[3];
    float *a, *b, *y;
    float want[MAX_N];
    size_t n;
};

static void lane_init(struct lane *l, size_t n, bool hostile)
{
    for (int i = 0; i < 3; i++)
        guard_init(&l->g[i], n * sizeof(float));
    l->n = n;
    l->a = guard_end(&l->g[0], n * sizeof(float));
    l->b = guard_end(&l->g[1], n * sizeof(float));
    l->y = guard_end(&l->g[2], n * sizeof(float));
    normals(l->a, n, hostile);
    normals(l->b, n, hostile);
}

static void lane_clear(struct lane *l)
{
    for (int i = 0; i < 3; i++)
        guard_clear(&l->g[i]);
}

static int lane_compare(const struct row *r, const struct lane *l)
{
    size_t at = check_same(l->y, l->want, l->n);

    if (at < l->n)
        return check_fail(r, "n=%zu: y[%zu] is %a, the twin says %a", l->n, at, (double)l->y[at],
                          (double)l->want[at]);
    return 0;
}

typedef void call_fn(const union kernel *k, struct lane *l, float *y);
typedef double want_fn(const struct lane *l, size_t i);

/* Every length 1 … 69 and some long ones; the twin against double precision where want says how. */
static int each_length(const struct row *r, call_fn *call, want_fn *want)
{
    int bad = 0;

    for (size_t i = 1; i <= 69 + sizeof(long_ones) / sizeof(long_ones[0]) && !bad; i++)
        for (int hostile = 0; hostile < 2 && !bad; hostile++) {
            struct lane l;

            lane_init(&l, i <= 69 ? i : long_ones[i - 70], hostile);
            call(&r->twin, &l, l.want);
            call(&r->kernel, &l, l.y);
            bad = lane_compare(r, &l);
            for (size_t j = 0; want && row_is_twin(r) && !hostile && j < l.n && !bad; j++) {
                double w = want(&l, j);

                if (!(fabs((double)l.y[j] - w) <= 2e-6 * fmax(1.0, fabs(w))))
                    bad = check_fail(r, "n=%zu: y[%zu] is %g, double precision says %g", l.n, j,
                                     (double)l.y[j], w);
            }
            lane_clear(&l);
        }
    return bad;
}

static void call_add(const union kernel *k, struct lane *l, float *y)
{
    k->add(l->a, l->b, y, l->n);
}

static double want_add(const struct lane *l, size_t i)
{
    return (double)l->a[i] + (double)l->b[i];
}

int check_add(const struct row *r)
{
    return each_length(r, call_add, want_add);
}

static void call_mul(const union kernel *k, struct lane *l, float *y)
{
    k->mul(l->a, l->b, y, l->n);
}

static double want_mul(const struct lane *l, size_t i)
{
    return (double)l->a[i] * (double)l->b[i];
}

int check_mul(const struct row *r)
{
    return each_length(r, call_mul, want_mul);
}

static void call_scale(const union kernel *k, struct lane *l, float *y)
{
    k->scale(l->a, 0.3f, y, l->n);
}

static double want_scale(const struct lane *l, size_t i)
{
    return (double)l->a[i] * (double)0.3f;
}

int check_scale(const struct row *r)
{
    return each_length(r, call_scale, want_scale);
}

static void call_silu(const union kernel *k, struct lane *l, float *y)
{
    k->silu_mul(l->a, l->b, y, l->n);
}

static double want_silu(const struct lane *l, size_t i)
{
    return (double)l->a[i] / (1.0 + exp(-(double)l->a[i])) * (double)l->b[i];
}

int check_silu_mul(const struct row *r)
{
    return each_length(r, call_silu, want_silu);
}

static void call_gelu(const union kernel *k, struct lane *l, float *y)
{
    k->gelu_mul(l->a, l->b, y, l->n);
}

static double want_gelu(const struct lane *l, size_t i)
{
    double x = (double)l->a[i];

    return 0.5 * x * (1.0 + tanh(0.79788456080286536 * (x + 0.044715 * x * x * x))) *
           (double)l->b[i];
}

static void call_gelu_alone(const union kernel *k, struct lane *l, float *y)
{
    k->gelu_mul(l->a, NULL, y, l->n);
}

int check_gelu_mul(const struct row *r)
{
    return each_length(r, call_gelu, want_gelu) + each_length(r, call_gelu_alone, NULL);
}

static void call_clamped(const union kernel *k, struct lane *l, float *y)
{
    for (size_t i = 0; i < l->n; i++)
        l->a[i] *= 2.0f; /* so that some are beyond the clamp */
    k->clamped_mul(l->a, l->b, y, l->n);
    for (size_t i = 0; i < l->n; i++)
        l->a[i] *= 0.5f;
}

static double want_clamped(const struct lane *l, size_t i)
{
    double x = fmin(2.0 * (double)l->a[i], 7.0), y = fmax(-7.0, fmin(7.0, (double)l->b[i]));

    return x / (1.0 + exp(-1.702 * x)) * (y + 1.0);
}

int check_clamped_mul(const struct row *r)
{
    return each_length(r, call_clamped, want_clamped);
}

static void call_softcap(const union kernel *k, struct lane *l, float *y)
{
    k->softcap(l->a, 2.5f, y, l->n);
}

static double want_softcap(const struct lane *l, size_t i)
{
    return 2.5 * tanh((double)l->a[i] / 2.5);
}

int check_softcap(const struct row *r)
{
    return each_length(r, call_softcap, want_softcap);
}

static void call_sigmoid(const union kernel *k, struct lane *l, float *y)
{
    k->sigmoid_mul(l->a, l->b, y, l->n);
}

static double want_sigmoid(const struct lane *l, size_t i)
{
    return (double)l->b[i] / (1.0 + exp(-(double)l->a[i]));
}

int check_sigmoid_mul(const struct row *r)
{
    return each_length(r, call_sigmoid, want_sigmoid);
}

static void call_softplus(const union kernel *k, struct lane *l, float *y)
{
    k->softplus(l->a, l->b, y, l->n);
}

static double want_softplus(const struct lane *l, size_t i)
{
    return log1p(exp((double)(l->a[i] + l->b[i])));
}

static void call_softplus_bare(const union kernel *k, struct lane *l, float *y)
{
    k->softplus(l->a, NULL, y, l->n);
}

int check_softplus(const struct row *r)
{
    return each_length(r, call_softplus, want_softplus) || each_length(r, call_softplus_bare, NULL);
}

/* Products of normals stay far below what overflows. */
static void call_exp_mul(const union kernel *k, struct lane *l, float *y)
{
    k->exp_mul(l->a, l->b, y, l->n);
}

int check_exp_mul(const struct row *r)
{
    return each_length(r, call_exp_mul, NULL);
}

static void call_softmax(const union kernel *k, struct lane *l, float *y)
{
    k->softmax(l->a, y, l->n);
}

static double want_softmax(const struct lane *l, size_t i)
{
    double max = -INFINITY, sum = 0;

    for (size_t j = 0; j < l->n; j++)
        max = fmax(max, (double)l->a[j]);
    for (size_t j = 0; j < l->n; j++)
        sum += exp((double)l->a[j] - max);
    return exp((double)l->a[i] - max) / sum;
}

int check_softmax(const struct row *r)
{
    return each_length(r, call_softmax, want_softmax);
}

static double want_rmsnorm(const struct lane *l, size_t i)
{
    double sum = 0;

    for (size_t j = 0; j < l->n; j++)
        sum += (double)l->a[j] * (double)l->a[j];
    return (double)l->a[i] / sqrt(sum / (double)l->n + 1e-5) * (double)l->b[i];
}

static void call_rmsnorm(const union kernel *k, struct lane *l, float *y)
{
    k->rmsnorm(l->a, l->b, 1e-5f, y, l->n);
}

static void call_rmsnorm_bare(const union kernel *k, struct lane *l, float *y)
{
    k->rmsnorm(l->a, NULL, 1e-5f, y, l->n);
}

int check_rmsnorm(const struct row *r)
{
    return each_length(r, call_rmsnorm, want_rmsnorm) + each_length(r, call_rmsnorm_bare, NULL);
}

static double want_layernorm(const struct lane *l, size_t i)
{
    double mean = 0, sum = 0;

    for (size_t j = 0; j < l->n; j++)
        mean += (double)l->a[j] / (double)l->n;
    for (size_t j = 0; j < l->n; j++)
        sum += ((double)l->a[j] - mean) * ((double)l->a[j] - mean);
    return ((double)l->a[i] - mean) / sqrt(sum / (double)l->n + 1e-2) * (double)l->b[i] +
           (double)l->b[i];
}

static void call_layernorm(const union kernel *k, struct lane *l, float *y)
{
    k->layernorm(l->a, l->b, l->b, 1e-2f, y, l->n);
}

static void call_layernorm_bare(const union kernel *k, struct lane *l, float *y)
{
    k->layernorm(l->a, NULL, NULL, 1e-2f, y, l->n);
}

int check_layernorm(const struct row *r)
{
    return each_length(r, call_layernorm, want_layernorm) +
           each_length(r, call_layernorm_bare, NULL);
}

/* Rotations happen in place, over an even number of dimensions. */
static void call_rope(const union kernel *k, struct lane *l, float *y)
{
    memcpy(y, l->a, l->n * sizeof(float));
    k->rope(y, l->b, l->n & ~(size_t)1);
}

static double want_rope(const struct lane *l, size_t i)
{
    const float *x = l->a + (i & ~(size_t)1), *cs = l->b + (i & ~(size_t)1);

    if (i >= (l->n & ~(size_t)1))
        return (double)l->a[i];
    return i % 2 ? (double)x[0] * (double)cs[1] + (double)x[1] * (double)cs[0]
                 : (double)x[0] * (double)cs[0] - (double)x[1] * (double)cs[1];
}

int check_rope(const struct row *r)
{
    return each_length(r, call_rope, want_rope);
}

static void call_rope_neox(const union kernel *k, struct lane *l, float *y)
{
    memcpy(y, l->a, l->n * sizeof(float));
    k->rope_neox(y, l->b, l->n & ~(size_t)1);
}

static double want_rope_neox(const struct lane *l, size_t i)
{
    size_t half = l->n / 2, j = i % (half ? half : 1);
    double a, b, c, s;

    if (i >= 2 * half)
        return (double)l->a[i];
    a = (double)l->a[j];
    b = (double)l->a[j + half];
    c = (double)l->b[2 * j];
    s = (double)l->b[2 * j + 1];
    return i < half ? a * c - b * s : a * s + b * c;
}

int check_rope_neox(const struct row *r)
{
    return each_length(r, call_rope_neox, want_rope_neox);
}

/* m and l are two numbers more: they ride in the first places of the lane. */
static void call_merge(const union kernel *k, struct lane *l, float *y)
{
    float m = l->a[0], sum = fabsf(l->b[0]);

    memcpy(y, l->a, l->n * sizeof(float));
    if (l->n > 2)
        k->attn_merge(&y[0], &y[1], y + 2, m * 0.5f + 1.0f, sum, l->b + 2, l->n - 2);
}

int check_attn_merge(const struct row *r)
{
    return each_length(r, call_merge, NULL);
}

/* -- caches ----------------------------------------------------------------------------- */

/* Every exponent and sign of f32 with random fractions, and the ties of rounding. */
static void all_sizes(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)check_random();

        if (check_random() % 2)
            bits &= 0xffffe000u | (uint32_t)(check_random() % 2 << 12);
        memcpy(&x[i], &bits, sizeof(bits));
        if (isnan(x[i]))
            x[i] = check_normal();
    }
}

int check_encode(const struct row *r)
{
    static float x[MAX_N];
    static unsigned char want[MAX_N * sizeof(float)];
    const struct format *f = format_of_name(r->fmt);
    size_t e = f->block_elems;
    int bad = 0;

    for (size_t n = e; n <= MAX_N && !bad; n += n < 70 * e ? e : 97 * e) {
        size_t bytes = format_row_bytes(f, n);
        struct guard in, out;
        unsigned char *got;
        float *at;

        guard_init(&in, n * sizeof(float));
        guard_init(&out, bytes);
        at = guard_end(&in, n * sizeof(float));
        got = guard_end(&out, bytes);
        all_sizes(x, n);
        memcpy(at, x, n * sizeof(float));
        f->from_f32(at, want, n);
        r->kernel.encode(at, got, n);
        if (memcmp(got, want, bytes) != 0)
            bad = check_fail(r, "n=%zu: other bytes than from_f32", n);
        guard_clear(&in);
        guard_clear(&out);
    }
    return bad;
}

/* -- attention -------------------------------------------------------------------------- */

#define ATTN_MAX_Q   39
#define ATTN_MAX_DIM 576

struct attn_case {
    size_t n_q, head_dim, v_dim, from, to;
    float soft_cap;
    bool spans;
};

struct attn_out {
    float m[ATTN_MAX_Q], l[ATTN_MAX_Q], o[ATTN_MAX_Q * ATTN_MAX_DIM];
};

static void encode_kv(const struct format *f, void *out, size_t n_rows, size_t dim)
{
    float x[ATTN_MAX_DIM];

    for (size_t i = 0; i < n_rows; i++) {
        for (size_t d = 0; d < dim; d++)
            x[d] = check_normal();
        f->from_f32(x, (char *)out + i * format_row_bytes(f, dim), dim);
    }
}

static int try_attn(const struct row *r, const struct format *f, const struct attn_case *c)
{
    size_t k_row = format_row_bytes(f, c->head_dim), v_row = format_row_bytes(f, c->v_dim);
    struct attn_span spans[ATTN_MAX_Q];
    struct guard gk, gv, gq;
    static struct attn_out want, got;
    struct attn a = {
        .n_q = c->n_q,
        .q_stride = c->head_dim,
        .k_stride = k_row,
        .v_stride = v_row,
        .from = c->from,
        .to = c->to,
        .head_dim = c->head_dim,
        .v_dim = c->v_dim,
        .scale = 0.125f,
        .soft_cap = c->soft_cap,
    };
    float *q;
    int bad = 0;

    memset(&want, 0, sizeof(want));
    memset(&got, 0, sizeof(got));
    guard_init(&gk, c->to * k_row);
    guard_init(&gv, c->to * v_row);
    guard_init(&gq, c->n_q * c->head_dim * sizeof(float));
    a.k = guard_end(&gk, c->to * k_row);
    a.v = guard_end(&gv, c->to * v_row);
    a.q = q = guard_end(&gq, c->n_q * c->head_dim * sizeof(float));
    encode_kv(f, guard_end(&gk, c->to * k_row), c->to, c->head_dim);
    encode_kv(f, guard_end(&gv, c->to * v_row), c->to, c->v_dim);
    normals(q, c->n_q * c->head_dim, false);
    for (size_t i = 0; i < c->n_q; i++)
        spans[i] = (struct attn_span){
            (uint32_t)(c->from + i / 9 % 3 % ((c->to - c->from + 1) / 2)),
            (uint32_t)(c->to - i % 9 % ((c->to - c->from + 1) / 2)),
        };
    a.spans = c->spans ? spans : NULL;

    a.m = want.m;
    a.l = want.l;
    a.o = want.o;
    r->twin.attn(&a);
    a.m = got.m;
    a.l = got.l;
    a.o = got.o;
    r->kernel.attn(&a);
    if (check_same(want.m, got.m, c->n_q) < c->n_q || check_same(want.l, got.l, c->n_q) < c->n_q)
        bad = check_fail(r, "head %zu, keys %zu … %zu: m or l differ", c->head_dim, c->from, c->to);
    else if (check_same(want.o, got.o, c->n_q * c->v_dim) < c->n_q * c->v_dim)
        bad = check_fail(r, "head %zu, keys %zu … %zu: o differs", c->head_dim, c->from, c->to);
    guard_clear(&gk);
    guard_clear(&gv);
    guard_clear(&gq);
    return bad;
}

int check_attn(const struct row *r)
{
    static const size_t dims[][2] = {{32, 32},   {64, 64},   {96, 96}, {128, 128},
                                     {192, 128}, {256, 256}, {80, 72}, {576, 512}};
    static const size_t queries[] = {1, 2, 3, 4, 5, 6, 7, 32, 39};
    static const size_t keys[][2] = {{0, 1},  {0, 2},   {0, 15},  {0, 16},    {0, 17},  {3, 4},
                                     {5, 40}, {0, 100}, {0, 256}, {250, 256}, {17, 255}};
    const struct format *f = format_of_name(r->fmt);
    int bad = 0;

    for (size_t d = 0; d < sizeof(dims) / sizeof(dims[0]); d++)
        for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
            for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]) && !bad; i++) {
                size_t n_q = queries[i];
                struct attn_case c = {.n_q = n_q,
                                      .head_dim = dims[d][0],
                                      .v_dim = dims[d][1],
                                      .from = keys[k][0],
                                      .to = keys[k][1],
                                      .soft_cap = n_q % 3 == 0 ? 30.0f : 0.0f,
                                      .spans = n_q % 2 == 0};

                /* Long heads and many queries are slow in the twin: some of them do. */
                if (dims[d][0] % f->block_elems == 0 &&
                    (n_q * dims[d][0] < 1024 || (d + k + i) % 4 == 0))
                    bad += try_attn(r, f, &c);
            }
    return bad;
}
