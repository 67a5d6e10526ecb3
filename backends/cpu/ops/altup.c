/*
 * PREDICT, CORRECT, MAGNITUDE: alternating updates (Baykal et al. 2023, arXiv
 * 2301.13310) as Gemma 3n has them: a row has n streams side by side, a layer
 * computes with the first and tells from it what the others become.  ABOVE: what
 * stands out of a row (the sparsity of its feed-forward part).
 *
 * Plain C: sums are of eight partial ones in double, in one order everywhere.
 */
#include <math.h>

#include "backends/cpu/cpu.h"

#define PARTS 8

/* Of the squares of x - mean; the mean 0: of x. */
static double sum_of_squares(const float *x, double mean, size_t n)
{
    double part[PARTS] = {0}, sum = 0;

    for (size_t i = 0; i < n; i++) {
        double d = (double)x[i] - mean;

        part[i % PARTS] += d * d;
    }
    for (size_t i = 0; i < PARTS; i++)
        sum += part[i];
    return sum;
}

static double sum_of(const float *x, size_t n)
{
    double part[PARTS] = {0}, sum = 0;

    for (size_t i = 0; i < n; i++)
        part[i % PARTS] += (double)x[i];
    for (size_t i = 0; i < PARTS; i++)
        sum += part[i];
    return sum;
}

static void predict_row(const float *x, const float *share, float *y, size_t n, size_t width)
{
    for (size_t s = 0; s < n; s++)
        for (size_t i = 0; i < width; i++) {
            float sum = x[i] * share[s * n];

            for (size_t t = 1; t < n; t++)
                sum += x[t * width + i] * share[s * n + t];
            y[s * width + i] = x[s * width + i] + sum;
        }
}

static void run_predict(const struct op *op, const struct part *p)
{
    size_t n = op->p.hyper.n, from, to;

    part_rows(p, &from, &to);
    for (size_t r = from; r < to; r++)
        predict_row(tensor_f32(&op->src[0], r), tensor_f32(&op->src[1], r),
                    tensor_f32(&op->dst[0], r), n, op->dst[0].n[0] / n);
}

static void run_correct(const struct op *op, const struct part *p)
{
    size_t width = op->src[1].n[0], from, to;

    part_rows(p, &from, &to);
    for (size_t r = from; r < to; r++) {
        const float *x = tensor_f32(&op->src[0], r), *seen = tensor_f32(&op->src[1], r);
        const float *share = tensor_f32(&op->src[2], r);
        float *y = tensor_f32(&op->dst[0], r);

        for (size_t s = 0; s < op->p.hyper.n; s++)
            for (size_t i = 0; i < width; i++)
                y[s * width + i] = x[s * width + i] + (seen[i] - x[i]) * (1.0f + share[s]);
    }
}

static void run_magnitude(const struct op *op, const struct part *p)
{
    size_t n = op->src[1].n[0], from, to;

    part_rows(p, &from, &to);
    for (size_t r = from; r < to; r++) {
        double length = sqrt(sum_of_squares(tensor_f32(&op->src[1], r), 0, n));

        for (size_t at = 0; at < op->dst[0].n[0]; at += n) {
            const float *x = tensor_f32(&op->src[0], r) + at;
            double own = sqrt(sum_of_squares(x, 0, n));

            /* A row of zeros has no direction: it stays. */
            p->k->scale(x, own > 0 ? (float)(length / own) : 0.0f, tensor_f32(&op->dst[0], r) + at,
                        n);
        }
    }
}

static void run_above(const struct op *op, const struct part *p)
{
    size_t n = op->dst[0].n[0], from, to;

    part_rows(p, &from, &to);
    for (size_t r = from; r < to; r++) {
        const float *x = tensor_f32(&op->src[0], r);
        float *y = tensor_f32(&op->dst[0], r), cut;
        double mean = sum_of(x, n) / (double)n;
        double deviation = sqrt(sum_of_squares(x, mean, n) / (double)(n - 1));

        cut = (float)(mean + (double)op->p.above.s * deviation);
        for (size_t i = 0; i < n; i++)
            y[i] = x[i] > cut ? x[i] - cut : 0.0f;
    }
}

const struct driver driver_PREDICT = {.run = run_predict, .by_row = true};
const struct driver driver_CORRECT = {.run = run_correct, .by_row = true};
const struct driver driver_MAGNITUDE = {.run = run_magnitude, .by_row = true};
const struct driver driver_ABOVE = {.run = run_above, .by_row = true};
