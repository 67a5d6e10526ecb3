/* The scalar twins against double arithmetic: activations, products of every format, hostile blocks. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/cpuid.h"
#include "backends/cpu/kernels.h"
#include "backends/formats/half.h"

TCase *tcase_cpu_scalar_matvec(void);

#define N     512
#define ROWS  5
#define COLS  4
#define GUARD 12345.5f

static float normal(void)
{
    double u = (rand() + 1.0) / (RAND_MAX + 2.0), v = rand() / (RAND_MAX + 1.0);

    return (float)(sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
}

/* -- activations ----------------------------------------------------------------------- */

/* The int8 row as doubles, whatever its kind. */
static void widen(enum act_kind kind, const void *act, size_t n, double *out)
{
    const struct act_q8_32 *a32 = act;
    const struct act_q8_256 *a256 = act;
    const float *f = act;

    for (size_t i = 0; i < n; i++)
        out[i] = kind == ACT_Q8_32    ? (double)a32[i / 32].d * a32[i / 32].q[i % 32]
                 : kind == ACT_Q8_256 ? (double)a256[i / 256].d * a256[i / 256].q[i % 256]
                                      : (double)f[i];
}

static void quantize(enum act_kind kind, const float *x, size_t n, void *out)
{
    struct kernels k;

    kernels_select(&k, TIER_scalar);
    k.quantize[kind](x, n, out);
}

START_TEST(activations_are_off_by_half_a_step_at_most)
{
    static const enum act_kind kinds[] = {ACT_Q8_32, ACT_Q8_256};
    static float x[N];
    static double back[N];
    static uint8_t act[4 * N];
    enum act_kind kind = kinds[_i];
    size_t block = act_block_elems(kind);

    srand(1);
    for (int i = 0; i < N; i++)
        x[i] = normal() * (float)(1 + i / 100);
    quantize(kind, x, N, act);
    widen(kind, act, N, back);
    for (size_t i = 0; i < N; i += block) {
        double max = 0;

        for (size_t k = i; k < i + block; k++)
            max = fmax(max, fabs((double)x[k]));
        for (size_t k = i; k < i + block; k++)
            ck_assert_double_le(fabs(back[k] - (double)x[k]), max / 254 * (1 + 1e-5));
    }
}
END_TEST

START_TEST(sums_are_those_of_the_codes_and_the_padding_is_zero)
{
    float x[300];
    struct act_q8_32 a32[10];
    struct act_q8_256 a256[2];

    memset(a32, 0xee, sizeof a32);
    memset(a256, 0xee, sizeof a256);
    srand(2);
    for (int i = 0; i < 300; i++)
        x[i] = normal() + 1;
    quantize(ACT_Q8_32, x, 300, a32);
    quantize(ACT_Q8_256, x, 300, a256);
    for (int b = 0; b < 10; b++) {
        int sum = 0;

        for (int i = 0; i < 32; i++)
            sum += a32[b].q[i];
        ck_assert_int_eq(a32[b].sum, sum);
    }
    for (int i = 300 % 32; i < 32; i++)
        ck_assert_int_eq(a32[9].q[i], 0);
    for (int b = 0; b < 2; b++)
        for (int j = 0; j < 16; j++) {
            int sum = 0;

            for (int i = 0; i < 16; i++)
                sum += a256[b].q[16 * j + i];
            ck_assert_int_eq(a256[b].sums[j], sum);
        }
    for (int i = 300 % 256; i < 256; i++)
        ck_assert_int_eq(a256[1].q[i], 0);
    for (int i = 0; i < 7; i++)
        ck_assert_uint_eq(a256[1].pad[i], 0);
}
END_TEST

START_TEST(codes_stay_within_127_and_reach_it)
{
    struct act_q8_32 a;
    float x[32];

    srand(3);
    for (int round = 0; round < 2000; round++) {
        int most = 0;

        for (int i = 0; i < 32; i++)
            x[i] = ldexpf(normal(), rand() % 200 - 100);
        quantize(ACT_Q8_32, x, 32, &a);
        for (int i = 0; i < 32; i++)
            most = abs(a.q[i]) > most ? abs(a.q[i]) : most;
        ck_assert_int_eq(most, 127);
    }
}
END_TEST

START_TEST(a_tie_rounds_to_even)
{
    float x[32] = {127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 63.5f};
    static const int want[8] = {127, 0, 2, 2, 0, -2, -2, 64};
    struct act_q8_32 a;

    quantize(ACT_Q8_32, x, 32, &a);
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(a.q[i], want[i]);
    ck_assert_float_eq(a.d, 1);
}
END_TEST

START_TEST(zeros_and_vanishing_values_have_no_scale)
{
    static const float tiny[] = {0, -0.0f, 0x1p-149f, 1e-38f};
    struct act_q8_32 a;
    float x[32];

    for (int t = 0; t < 4; t++) {
        for (int i = 0; i < 32; i++)
            x[i] = tiny[t];
        quantize(ACT_Q8_32, x, 32, &a);
        ck_assert_float_eq(a.d, 0);
        ck_assert_int_eq(a.sum, 0);
        ck_assert_int_eq(a.q[31], 0);
    }
}
END_TEST

START_TEST(what_is_not_finite_shows_in_the_scale)
{
    static const float bad[] = {NAN, -NAN, HUGE_VALF, -HUGE_VALF};
    struct act_q8_32 a[2];
    struct act_q8_256 b;
    float x[256];

    for (int t = 0; t < 4; t++) {
        for (int i = 0; i < 256; i++)
            x[i] = 1;
        x[40] = bad[t];
        quantize(ACT_Q8_32, x, 64, a);
        quantize(ACT_Q8_256, x, 256, &b);
        ck_assert_float_eq(a[0].d, 1.0f / 127.0f);
        ck_assert_uint_eq(f32_bits(a[1].d), 0x7fc00000);
        ck_assert_uint_eq(f32_bits(b.d), 0x7fc00000);
        ck_assert_int_eq(b.q[0], 0);
    }
}
END_TEST

/* -- products ---------------------------------------------------------------------------- */

struct product {
    const struct format *f;
    uint8_t w[ROWS * N * 8]; /* f64 is the widest */
    _Alignas(64) uint8_t act[COLS * N * sizeof(float)];
    float x[COLS][N];
    float y[COLS * (ROWS + 2) + 2]; /* with guards round every column */
    struct matvec m;
};

static void prepare(struct product *p, enum format_id id, size_t n)
{
    p->f = format_of(id);
    p->m = (struct matvec){.w = p->w,
                           .row_bytes = format_row_bytes(p->f, n),
                           .rows = ROWS,
                           .n = n,
                           .act = p->act,
                           .act_stride = act_row_bytes(p->f->act, n),
                           .cols = COLS,
                           .y = p->y + 1,
                           .y_stride = ROWS + 2};
    for (size_t c = 0; c < COLS; c++)
        for (size_t i = 0; i < n; i++)
            p->x[c][i] = normal();
}

static void fill_normal(struct product *p)
{
    static float row[N];

    for (size_t r = 0; r < ROWS; r++) {
        for (size_t i = 0; i < p->m.n; i++)
            row[i] = p->f->block_elems == 1 ? 10 * normal() : normal();
        p->f->from_f32(row, p->w + r * p->m.row_bytes, p->m.n);
    }
}

static void multiply(struct product *p)
{
    struct kernels k;

    kernels_select(&k, TIER_scalar);
    for (size_t c = 0; c < COLS; c++) {
        uint8_t *act = p->act + c * p->m.act_stride;

        if (p->f->act == ACT_F32)
            memcpy(act, p->x[c], p->m.n * sizeof(float));
        else
            k.quantize[p->f->act](p->x[c], p->m.n, act);
    }
    for (size_t i = 0; i < sizeof p->y / sizeof *p->y; i++)
        p->y[i] = GUARD;
    k.matvec[format_id_of(p->f)](&p->m);
}

/* |want - got| <= eps * Σ|w x| with x as the kernel has it, plus the error of x by the given share. */
static void check_product(const struct product *p, double eps, double act_eps)
{
    static float w[N];
    static double x[N];

    for (size_t r = 0; r < ROWS; r++) {
        p->f->to_f32(p->w + r * p->m.row_bytes, w, p->m.n);
        for (size_t c = 0; c < COLS; c++) {
            double want = 0, want_true = 0, sum_abs = 0;
            double got = (double)p->y[1 + c * p->m.y_stride + r];

            widen(p->f->act, p->act + c * p->m.act_stride, p->m.n, x);
            for (size_t i = 0; i < p->m.n; i++) {
                want += (double)w[i] * x[i];
                want_true += (double)w[i] * (double)p->x[c][i];
                sum_abs += fabs((double)w[i] * x[i]);
            }
            ck_assert_msg(fabs(want - got) <= eps * sum_abs, "%s row %zu column %zu: %g, not %g",
                          p->f->name, r, c, got, want);
            ck_assert_msg(fabs(want_true - got) <= (eps + act_eps) * sum_abs,
                          "%s row %zu column %zu: %g, not %g", p->f->name, r, c, got, want_true);
        }
    }
}

START_TEST(a_product_is_the_sum_of_the_decoded_weights)
{
    static struct product p;

    srand(21);
    prepare(&p, (enum format_id)_i, N);
    fill_normal(&p);
    multiply(&p);
    check_product(&p, 2e-6, p.f->act == ACT_F32 ? 0 : 1e-2);
}
END_TEST

START_TEST(nothing_is_written_but_rows_times_columns)
{
    static struct product p;

    srand(22);
    prepare(&p, (enum format_id)_i, N);
    fill_normal(&p);
    multiply(&p);
    for (size_t i = 0; i < sizeof p.y / sizeof *p.y; i++) {
        int inside = i >= 1 && (i - 1) % (ROWS + 2) < ROWS && i - 1 < COLS * (ROWS + 2);

        ck_assert_int_eq(p.y[i] != GUARD, inside);
    }
}
END_TEST

START_TEST(a_column_has_the_same_bits_alone_and_in_company)
{
    static struct product p;
    float all[COLS][ROWS];

    srand(23);
    prepare(&p, (enum format_id)_i, N);
    fill_normal(&p);
    multiply(&p);
    for (int c = 0; c < COLS; c++)
        memcpy(all[c], p.y + 1 + (size_t)c * (ROWS + 2), sizeof all[c]);
    for (int c = 0; c < COLS; c++) {
        struct kernels k;

        kernels_select(&k, TIER_scalar);
        p.m.cols = 1;
        p.m.act = p.act + (size_t)c * p.m.act_stride;
        k.matvec[_i](&p.m);
        ck_assert_mem_eq(p.y + 1, all[c], sizeof all[c]);
    }
}
END_TEST

START_TEST(plain_weights_take_rows_of_any_length)
{
    static const enum format_id ids[] = {FORMAT_f32, FORMAT_f16, FORMAT_bf16, FORMAT_i8};
    static struct product p;

    srand(24);
    for (size_t n = 1; n <= 70; n++) {
        prepare(&p, ids[_i], n);
        fill_normal(&p);
        multiply(&p);
        check_product(&p, 1e-6, 0);
    }
}
END_TEST

START_TEST(an_element_that_is_not_there_touches_no_partial_sum)
{
    static struct product p;
    float zero = -0.0f;

    srand(25);
    prepare(&p, FORMAT_f32, 3);
    for (size_t r = 0; r < ROWS; r++)
        for (int i = 0; i < 3; i++)
            memcpy(p.w + r * p.m.row_bytes + 4 * (size_t)i, &zero, 4);
    p.x[0][0] = 1;
    multiply(&p);
    ck_assert_float_eq(p.y[1], 0);
}
END_TEST

/* One fma per block in ascending order: with scales far apart the order shows in the bits. */
START_TEST(blocks_are_added_in_ascending_order)
{
    struct kernels k;
    uint8_t w[3][34] = {{0}};
    struct act_q8_32 a[3] = {
        {.q = {1}, .d = 1, .sum = 1}, {.q = {1}, .d = 1, .sum = 1}, {.q = {1}, .d = 1, .sum = 1}};
    static const float scale[3] = {32768, 0x1p-10f, -32768};
    float y = 0;
    struct matvec m = {.w = w,
                       .row_bytes = sizeof w,
                       .rows = 1,
                       .n = 96,
                       .act = a,
                       .act_stride = sizeof a,
                       .cols = 1,
                       .y = &y,
                       .y_stride = 1};

    for (int b = 0; b < 3; b++) {
        uint16_t d = f32_to_f16(scale[b]);

        memcpy(w[b], &d, 2);
        w[b][2] = 1;
    }
    kernels_select(&k, TIER_scalar);
    k.matvec[FORMAT_q8_0](&m);
    /* 2^15 + 2^-10 is lost to rounding: 0, where any other order keeps 2^-10. */
    ck_assert_float_eq(y, 0);
}
END_TEST

/* -- hostile blocks ------------------------------------------------------------------------- */

/* Integers at their bounds: the twin still gives what doubles give. */
START_TEST(extreme_codes_do_not_overflow)
{
    static const int fills[] = {0x00, 0xff, 0x80, 0x7f, 0x55};
    static struct product p;

    srand(26);
    for (int f = 0; f < 5; f++) {
        prepare(&p, (enum format_id)_i, N);
        if (p.f->act == ACT_F32)
            return;
        memset(p.w, fills[f], sizeof p.w);
        for (size_t c = 0; c < COLS; c++)
            for (size_t i = 0; i < N; i++)
                p.x[c][i] = c == 0 ? 1 : c == 1 ? -1 : rand() % 2 ? 1.0f : -1.0f;
        multiply(&p);
        for (size_t r = 0; r < ROWS; r++)
            for (size_t c = 0; c < COLS; c++) {
                static float w[N];
                double want = 0, sum_abs = 0, got = (double)p.y[1 + c * p.m.y_stride + r];

                p.f->to_f32(p.w, w, N);
                for (size_t i = 0; i < N; i++) {
                    want += (double)w[i] * (double)p.x[c][i];
                    sum_abs += fabs((double)w[i]);
                }
                /* A scale of ones is NaN or overflows: then the product must show it. */
                ck_assert_msg(!isfinite(want) ? !isfinite(got)
                                              : fabs(want - got) <= 4e-6 * sum_abs + 1e-30,
                              "%s of 0x%02x: %g, not %g", p.f->name, fills[f], got, want);
            }
    }
}
END_TEST

START_TEST(random_blocks_give_what_doubles_give)
{
    static struct product p;

    srand(27);
    for (int round = 0; round < 20; round++) {
        static float w[N];
        int finite = 1;

        prepare(&p, (enum format_id)_i, N);
        for (size_t i = 0; i < sizeof p.w; i++)
            p.w[i] = (uint8_t)(rand() >> 7);
        multiply(&p);
        for (size_t r = 0; r < ROWS; r++) {
            p.f->to_f32(p.w + r * p.m.row_bytes, w, N);
            for (int i = 0; i < N; i++)
                finite &= isfinite(w[i]) && fabsf(w[i]) < 1e30f;
        }
        if (finite)
            check_product(&p, 1e-4, 1);
    }
}
END_TEST

START_TEST(a_bad_activation_makes_the_product_bad_not_wrong)
{
    static struct product p;

    srand(28);
    prepare(&p, (enum format_id)_i, N);
    fill_normal(&p);
    p.x[1][77] = NAN;
    multiply(&p);
    for (size_t r = 0; r < ROWS; r++) {
        ck_assert(isfinite(p.y[1 + r]));
        ck_assert(isnan(p.y[1 + p.m.y_stride + r]));
    }
}
END_TEST

TCase *tcase_cpu_scalar_matvec(void)
{
    TCase *tc = tcase_create("scalar_matvec");

    tcase_add_loop_test(tc, activations_are_off_by_half_a_step_at_most, 0, 2);
    tcase_add_test(tc, sums_are_those_of_the_codes_and_the_padding_is_zero);
    tcase_add_test(tc, codes_stay_within_127_and_reach_it);
    tcase_add_test(tc, a_tie_rounds_to_even);
    tcase_add_test(tc, zeros_and_vanishing_values_have_no_scale);
    tcase_add_test(tc, what_is_not_finite_shows_in_the_scale);
    tcase_add_loop_test(tc, a_product_is_the_sum_of_the_decoded_weights, 0, FORMAT_COUNT);
    tcase_add_loop_test(tc, nothing_is_written_but_rows_times_columns, 0, FORMAT_COUNT);
    tcase_add_loop_test(tc, a_column_has_the_same_bits_alone_and_in_company, 0, FORMAT_COUNT);
    tcase_add_loop_test(tc, plain_weights_take_rows_of_any_length, 0, 4);
    tcase_add_test(tc, an_element_that_is_not_there_touches_no_partial_sum);
    tcase_add_test(tc, blocks_are_added_in_ascending_order);
    tcase_add_loop_test(tc, extreme_codes_do_not_overflow, 0, FORMAT_COUNT);
    tcase_add_loop_test(tc, random_blocks_give_what_doubles_give, 0, FORMAT_COUNT);
    tcase_add_loop_test(tc, a_bad_activation_makes_the_product_bad_not_wrong, 0, FORMAT_COUNT);
    return tc;
}
