/* Beds of the ops of alternating updates: PREDICT, CORRECT, MAGNITUDE, ABOVE. */
#include <math.h>
#include <stdio.h>

#include "tests/kernels/ops/bed.h"

#define CHECK(b) ((*ret_run)++, bed_check(&(b)))

static const struct {
    size_t n, width;
} shapes[] = {{4, 77}, {2, 64}, {8, 5}, {1, 33}};

static double want_predict(const struct bed *b, int o, size_t r, size_t i)
{
    size_t n = b->op.p.hyper.n, width = b->op.dst[0].n[0] / n, to = i / width;
    double sum = bed_src(b, 0, r, i);

    (void)o;
    for (size_t s = 0; s < n; s++)
        sum += bed_src(b, 0, r, s * width + i % width) * bed_src(b, 1, r, to * n + s);
    return sum;
}

int cases_PREDICT(int *ret_run)
{
    int bad = 0;

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct bed b = {
            .op = {.kind = OP_PREDICT}, .nmse = 1e-12, .want = want_predict, .row_src = 3};
        size_t n = shapes[i].n, all = n * shapes[i].width;

        snprintf(b.what, sizeof(b.what), "%zu streams of %zu", n, shapes[i].width);
        b.op.p.hyper.n = (unsigned)n;
        b.op.src[0] = bed_f32(&b, all, 9);
        b.op.src[1] = bed_f32(&b, n * n, 9);
        bed_out(&b, 0, all, 9);
        b.run.rows = 9;
        bad += CHECK(b);
    }
    return bad;
}

static double want_correct(const struct bed *b, int o, size_t r, size_t i)
{
    size_t width = b->op.src[1].n[0], at = i % width;

    (void)o;
    return bed_src(b, 0, r, i) +
           (bed_src(b, 1, r, at) - bed_src(b, 0, r, at)) * (1 + bed_src(b, 2, r, i / width));
}

int cases_CORRECT(int *ret_run)
{
    int bad = 0;

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct bed b = {
            .op = {.kind = OP_CORRECT}, .nmse = 1e-12, .want = want_correct, .row_src = 7};
        size_t n = shapes[i].n, all = n * shapes[i].width;

        snprintf(b.what, sizeof(b.what), "%zu streams of %zu", n, shapes[i].width);
        b.op.p.hyper.n = (unsigned)n;
        b.op.src[0] = bed_f32(&b, all, 9);
        b.op.src[1] = bed_f32(&b, shapes[i].width, 9);
        b.op.src[2] = bed_f32(&b, n, 9);
        bed_out(&b, 0, all, 9);
        b.run.rows = 9;
        bad += CHECK(b);
    }
    return bad;
}

static double length_of(const struct bed *b, int s, size_t r, size_t from, size_t n)
{
    double sum = 0;

    for (size_t i = from; i < from + n; i++)
        sum += bed_src(b, s, r, i) * bed_src(b, s, r, i);
    return sqrt(sum);
}

static double want_magnitude(const struct bed *b, int o, size_t r, size_t i)
{
    size_t n = b->op.src[1].n[0];
    double own = length_of(b, 0, r, i / n * n, n);

    (void)o;
    return own > 0 ? bed_src(b, 0, r, i) * length_of(b, 1, r, 0, n) / own : 0;
}

/* The last shape's rows are zeros. */
int cases_MAGNITUDE(int *ret_run)
{
    int bad = 0;

    for (size_t i = 0; i <= sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct bed b = {
            .op = {.kind = OP_MAGNITUDE}, .nmse = 1e-12, .want = want_magnitude, .row_src = 3};
        bool zeros = i == sizeof(shapes) / sizeof(shapes[0]);
        size_t n = zeros ? 3 : shapes[i].n, width = zeros ? 20 : shapes[i].width;

        snprintf(b.what, sizeof(b.what), "%zu groups of %zu%s", n, width, zeros ? ", zeros" : "");
        b.op.src[0] = bed_f32(&b, n * width, 9);
        b.op.src[1] = bed_f32(&b, width, 9);
        for (size_t k = 0; zeros && k < n * width * 9; k++)
            ((float *)b.op.src[0].data)[k] = 0;
        bed_out(&b, 0, n * width, 9);
        b.run.rows = 9;
        bad += CHECK(b);
    }
    return bad;
}

static double want_above(const struct bed *b, int o, size_t r, size_t i)
{
    size_t n = b->op.dst[0].n[0];
    double mean = 0, squares = 0, cut;

    (void)o;
    for (size_t k = 0; k < n; k++)
        mean += bed_src(b, 0, r, k) / (double)n;
    for (size_t k = 0; k < n; k++)
        squares += (bed_src(b, 0, r, k) - mean) * (bed_src(b, 0, r, k) - mean);
    cut = mean + (double)b->op.p.above.s * sqrt(squares / (double)(n - 1));
    return fmax(0, bed_src(b, 0, r, i) - cut);
}

int cases_ABOVE(int *ret_run)
{
    static const size_t widths[] = {2, 17, 96, 1536};
    static const float deviations[] = {0.0f, 0.5f, -1.0f};
    int bad = 0;

    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
        for (size_t d = 0; d < sizeof(deviations) / sizeof(deviations[0]); d++) {
            struct bed b = {
                .op = {.kind = OP_ABOVE}, .nmse = 1e-11, .want = want_above, .row_src = 1};

            snprintf(b.what, sizeof(b.what), "%zu wide, %g deviations", widths[i],
                     (double)deviations[d]);
            b.op.p.above.s = deviations[d];
            b.op.src[0] = bed_f32(&b, widths[i], 9);
            bed_out(&b, 0, widths[i], 9);
            b.run.rows = 9;
            bad += CHECK(b);
        }
    return bad;
}
