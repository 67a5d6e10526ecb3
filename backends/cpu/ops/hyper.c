/*
 * HYPER_MIX, HYPER_IN, HYPER_OUT: hyper-connections (Zhu et al. 2024, arXiv
 * 2409.19606) whose matrix Sinkhorn and Knopp's way makes nearly doubly
 * stochastic (Xie et al. 2025, arXiv 2512.24880).  A row has n streams side by
 * side; a part of a layer reads one mix of them and writes to all.
 */
#include "backends/cpu/cpu.h"
#include "backends/cpu/math.h"

/* Element [from][to] of the matrix. */
#define AT(from, to) ((from)*n + (to))

static void share_of_row(float *row, size_t n, float eps)
{
    float sum = 0.0f;

    for (size_t to = 0; to < n; to++)
        sum += row[to];
    for (size_t to = 0; to < n; to++)
        row[to] = row[to] / (sum + eps);
}

static void share_of_column(float *m, size_t n, size_t to, float eps)
{
    float sum = 0.0f;

    for (size_t from = 0; from < n; from++)
        sum += m[AT(from, to)];
    for (size_t from = 0; from < n; from++)
        m[AT(from, to)] = m[AT(from, to)] / (sum + eps);
}

static void norm_matrix(const struct op *op, const struct kernels *k, float *m)
{
    size_t n = op->p.hyper.n;
    float eps = op->p.hyper.eps;

    for (size_t from = 0; from < n; from++) {
        k->softmax(m + AT(from, 0), m + AT(from, 0), n);
        for (size_t to = 0; to < n; to++)
            m[AT(from, to)] += eps;
    }
    for (unsigned i = 0; i < op->p.hyper.n_iter; i++) {
        for (size_t from = 0; from < n && i; from++)
            share_of_row(m + AT(from, 0), n, eps);
        for (size_t to = 0; to < n; to++)
            share_of_column(m, n, to, eps);
    }
}

static void mix_row(const struct op *op, const struct kernels *k, const float *x, float *y)
{
    const float *scale = op->src[1].data, *base = op->src[2].data;
    size_t n = op->p.hyper.n, width = op->dst[0].n[0];

    for (size_t i = 0; i < n; i++)
        y[i] = math_sigmoid(x[i] * scale[0] + base[i]) + op->p.hyper.eps;
    for (size_t i = n; i < 2 * n && width > n; i++)
        y[i] = 2.0f * math_sigmoid(x[i] * scale[1] + base[i]);
    for (size_t i = 2 * n; i < width; i++)
        y[i] = x[i] * scale[2] + base[i];
    if (width > n)
        norm_matrix(op, k, y + 2 * n);
}

static void run_mix(const struct op *op, const struct part *p)
{
    size_t from, to;

    part_rows(p, &from, &to);
    for (size_t r = from; r < to; r++)
        mix_row(op, p->k, tensor_f32(&op->src[0], r), tensor_f32(&op->dst[0], r));
}

/* y += x * s; plain C: a product and a sum have the same bits in all of the compiler's vectors. */
static void add_scaled(const float *x, float s, float *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += x[i] * s;
}

static void run_in(const struct op *op, const struct part *p)
{
    size_t n = op->dst[0].n[0], from, to;

    part_rows(p, &from, &to);
    for (size_t r = from; r < to; r++) {
        const float *x = tensor_f32(&op->src[0], r), *share = tensor_f32(&op->src[1], r);
        float *y = tensor_f32(&op->dst[0], r);

        p->k->scale(x, share[0], y, n);
        for (size_t s = 1; s < op->p.hyper.n; s++)
            add_scaled(x + s * n, share[s], y, n);
    }
}

static void run_out(const struct op *op, const struct part *p)
{
    size_t width = op->src[1].n[0], n = op->p.hyper.n, from, to;

    part_rows(p, &from, &to);
    for (size_t r = from; r < to; r++) {
        const float *x = tensor_f32(&op->src[0], r), *mix = tensor_f32(&op->src[2], r);

        for (size_t s = 0; s < n; s++) {
            float *y = tensor_f32(&op->dst[0], r) + s * width;

            p->k->scale(tensor_f32(&op->src[1], r), mix[n + s], y, width);
            for (size_t t = 0; t < n; t++)
                add_scaled(x + t * width, mix[2 * n + AT(t, s)], y, width);
        }
    }
}

const struct driver driver_HYPER_MIX = {.run = run_mix, .by_row = true};
const struct driver driver_HYPER_IN = {.run = run_in, .by_row = true};
const struct driver driver_HYPER_OUT = {.run = run_out, .by_row = true};
