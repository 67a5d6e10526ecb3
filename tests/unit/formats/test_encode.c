/* Encoders: error on normal data, special rows, values that are not finite. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/formats/format.h"

TCase *tcase_formats_encode(void);

#define N 1024

/* Root of the mean squared error on normal data, as a share of the deviation; a few per cent above what is reached. */
static const struct {
    enum format_id id;
    double most;
} bounds[] = {
    {FORMAT_f32, 0},        {FORMAT_f64, 0},        {FORMAT_f16, 3e-4},     {FORMAT_bf16, 2.5e-3},
    {FORMAT_q8_0, 0.0065},  {FORMAT_q6_k, 0.022},   {FORMAT_q5_0, 0.05},    {FORMAT_q5_1, 0.045},
    {FORMAT_q5_k, 0.04},    {FORMAT_q4_0, 0.10},    {FORMAT_q4_1, 0.09},    {FORMAT_q4_k, 0.08},
    {FORMAT_iq4_nl, 0.085}, {FORMAT_iq4_xs, 0.085}, {FORMAT_mxfp4, 0.13},   {FORMAT_nvfp4, 0.11},
    {FORMAT_q3_k, 0.18},    {FORMAT_q2_k, 0.30},    {FORMAT_iq3_s, 0.17},   {FORMAT_iq3_xxs, 0.20},
    {FORMAT_iq2_s, 0.31},   {FORMAT_iq2_xs, 0.35},  {FORMAT_iq2_xxs, 0.40}, {FORMAT_iq1_s, 0.55},
    {FORMAT_iq1_m, 0.52},   {FORMAT_tq1_0, 0.56},   {FORMAT_tq2_0, 0.56},   {FORMAT_q2_0, 0.52},
    {FORMAT_q1_0, 0.65},
};

#define N_BOUNDS (int)(sizeof bounds / sizeof *bounds)

static float normal(void)
{
    double u = (rand() + 1.0) / (RAND_MAX + 2.0), v = rand() / (RAND_MAX + 1.0);

    return (float)(sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
}

static void round_trip(const struct format *f, const float *x, float *back, size_t n)
{
    uint8_t *bytes = malloc(format_row_bytes(f, n));

    f->from_f32(x, bytes, n);
    f->to_f32(bytes, back, n);
    free(bytes);
}

static double relative_error(const float *x, const float *back, size_t n)
{
    double err = 0, sum = 0;

    for (size_t i = 0; i < n; i++) {
        err += ((double)back[i] - (double)x[i]) * ((double)back[i] - (double)x[i]);
        sum += (double)x[i] * (double)x[i];
    }
    return sqrt(err / sum);
}

START_TEST(normal_data_is_kept_as_well_as_the_bits_allow)
{
    const struct format *f = format_of(bounds[_i].id);
    float x[N], back[N];

    srand(11);
    for (int i = 0; i < N; i++)
        x[i] = 0.02f * normal();
    round_trip(f, x, back, N);
    ck_assert_msg(relative_error(x, back, N) <= bounds[_i].most, "%s: %g", f->name,
                  relative_error(x, back, N));
}
END_TEST

/* A scale that overflows, vanishes or loses its bits would show here. */
START_TEST(the_error_does_not_depend_on_the_unit)
{
    const struct format *f = format_of(bounds[_i].id);
    float x[N], back[N];

    for (int e = -8; e <= 12; e += 5) {
        srand(12);
        for (int i = 0; i < N; i++)
            x[i] = ldexpf(normal(), e);
        if (f->act == ACT_F32 || (f == format_of(FORMAT_nvfp4) && (e > 8 || e < -4)))
            continue; /* whose scales go from 2^-9 to 448 */
        round_trip(f, x, back, N);
        ck_assert_msg(relative_error(x, back, N) <= bounds[_i].most * 1.1 + 0.01, "%s at 2^%d: %g",
                      f->name, e, relative_error(x, back, N));
    }
}
END_TEST

START_TEST(zeros_stay_zeros)
{
    const struct format *f = format_of((enum format_id)_i);
    float x[N] = {0}, back[N];

    round_trip(f, x, back, N);
    for (int i = 0; i < N; i++)
        ck_assert_float_eq(back[i], 0);
}
END_TEST

/* Encoder and decoder agree on where weight i lies. */
START_TEST(a_spike_comes_back_in_its_place)
{
    const struct format *f = format_of((enum format_id)_i);
    size_t n = f->block_elems == 1 ? 7 : f->block_elems;
    float x[256], back[256];

    for (size_t at = 0; at<n; at += n> 32 ? 5 : 1)
        for (int sign = -1; sign <= 1; sign += 2) {
            size_t best = 0;

            for (size_t i = 0; i < n; i++)
                x[i] = 0.25f * (float)sign;
            x[at] = 3.0f * (float)sign;
            round_trip(f, x, back, n);
            for (size_t i = 0; i < n; i++)
                if (back[i] * (float)sign > back[best] * (float)sign)
                    best = i;
            /* One-bit weights can only keep the sign. */
            if (f == format_of(FORMAT_q1_0))
                ck_assert_float_gt(back[at] * (float)sign, 0);
            else
                ck_assert_msg(best == at, "%s: %zu for %zu", f->name, best, at);
        }
}
END_TEST

START_TEST(a_row_that_is_not_finite_encodes_to_finite_weights)
{
    static const float bad[] = {NAN, HUGE_VALF, -HUGE_VALF, 3e38f, -3e38f, 1e-45f};
    const struct format *f = format_of((enum format_id)_i);
    float x[N], back[N];

    if (f->block_elems == 1)
        return; /* plain types say what they are given */
    srand(13);
    for (int i = 0; i < N; i++)
        x[i] = i % 3 ? normal() : bad[i / 3 % 6];
    round_trip(f, x, back, N);
    for (int i = 0; i < N; i++)
        ck_assert_msg(isfinite(back[i]), "%s: weight %d", f->name, i);
    for (int i = 0; i < N; i++)
        x[i] = bad[i / 256];
    round_trip(f, x, back, N);
    for (int i = 0; i < N; i++)
        ck_assert_msg(isfinite(back[i]), "%s: weight %d", f->name, i);
}
END_TEST

START_TEST(integers_are_rounded_and_clamped)
{
    static const enum format_id ids[] = {FORMAT_i8, FORMAT_i16, FORMAT_i32, FORMAT_i64};
    static const float ends[] = {128, 32768, 2147483648.0f, 9223372036854775808.0f};
    float x[5] = {2.5f, -1.4f, HUGE_VALF, -HUGE_VALF, 100}, back[5];

    round_trip(format_of(ids[_i]), x, back, 5);
    ck_assert_float_eq(back[0], 2);
    ck_assert_float_eq(back[1], -1);
    ck_assert_float_ge(back[2], ends[_i] - 1);
    ck_assert_float_eq(back[3], -ends[_i]);
    ck_assert_float_eq(back[4], 100);
}
END_TEST

TCase *tcase_formats_encode(void)
{
    TCase *tc = tcase_create("encode");

    tcase_add_loop_test(tc, normal_data_is_kept_as_well_as_the_bits_allow, 0, N_BOUNDS);
    tcase_add_loop_test(tc, the_error_does_not_depend_on_the_unit, 0, N_BOUNDS);
    tcase_add_loop_test(tc, zeros_stay_zeros, 0, FORMAT_COUNT);
    tcase_add_loop_test(tc, a_spike_comes_back_in_its_place, 0, FORMAT_COUNT);
    tcase_add_loop_test(tc, a_row_that_is_not_finite_encodes_to_finite_weights, 0, FORMAT_COUNT);
    tcase_add_loop_test(tc, integers_are_rounded_and_clamped, 0, 4);
    return tc;
}
