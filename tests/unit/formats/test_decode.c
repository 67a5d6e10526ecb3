/* Decoders: hand-made blocks with known weights, and hostile bytes. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/formats/blocks.h"
#include "backends/formats/format.h"
#include "backends/formats/half.h"
#include "backends/formats/iq_tables.h"
#include "backends/formats/unpack.h"

TCase *tcase_formats_decode(void);

#define ONE  0x3c00 /* f16 */
#define TWO  0x4000
#define HALF 0x3800

static const struct {
    unpack_fn *unpack;
    enum format_id id;
} unpackers[] = {
    {unpack_q4_0, FORMAT_q4_0},       {unpack_q4_1, FORMAT_q4_1},
    {unpack_q5_0, FORMAT_q5_0},       {unpack_q5_1, FORMAT_q5_1},
    {unpack_q8_0, FORMAT_q8_0},       {unpack_iq4_nl, FORMAT_iq4_nl},
    {unpack_mxfp4, FORMAT_mxfp4},     {unpack_nvfp4, FORMAT_nvfp4},
    {unpack_q1_0, FORMAT_q1_0},       {unpack_q2_0, FORMAT_q2_0},
    {unpack_q2_k, FORMAT_q2_k},       {unpack_q3_k, FORMAT_q3_k},
    {unpack_q4_k, FORMAT_q4_k},       {unpack_q5_k, FORMAT_q5_k},
    {unpack_q6_k, FORMAT_q6_k},       {unpack_iq1_s, FORMAT_iq1_s},
    {unpack_iq1_m, FORMAT_iq1_m},     {unpack_iq2_xxs, FORMAT_iq2_xxs},
    {unpack_iq2_xs, FORMAT_iq2_xs},   {unpack_iq2_s, FORMAT_iq2_s},
    {unpack_iq3_xxs, FORMAT_iq3_xxs}, {unpack_iq3_s, FORMAT_iq3_s},
    {unpack_iq4_xs, FORMAT_iq4_xs},   {unpack_tq1_0, FORMAT_tq1_0},
    {unpack_tq2_0, FORMAT_tq2_0},
};

#define N_UNPACKERS (int)(sizeof unpackers / sizeof *unpackers)

START_TEST(q4_0_keeps_the_first_half_in_the_low_nibbles)
{
    struct block_q4_0 b = {.d = TWO};
    float w[32];

    memset(b.qs, 0x88, sizeof b.qs);
    b.qs[3] = 0xf1;
    format_table[FORMAT_q4_0]->to_f32(&b, w, 32);
    ck_assert_float_eq(w[3], -14);
    ck_assert_float_eq(w[19], 14);
    ck_assert_float_eq(w[4], 0);
}
END_TEST

START_TEST(q5_1_takes_its_fifth_bit_from_the_place_of_the_weight)
{
    struct block_q5_1 b = {.d = ONE, .m = HALF, .qh = {0, 0, 0, 0x80}, .qs = {[15] = 0x30}};
    float w[32];

    format_table[FORMAT_q5_1]->to_f32(&b, w, 32);
    ck_assert_float_eq(w[31], 19.5f);
    ck_assert_float_eq(w[15], 0.5f);
}
END_TEST

/* Scales 1 … 8 and minima 9 … 16 by hand, then 63: both ways of packing six bits. */
START_TEST(q4_k_unpacks_six_bit_scales_and_minima)
{
    struct block_q4_k b = {.d = ONE, .dmin = ONE};
    float w[256];

    for (int j = 0; j < 4; j++) {
        b.scales[j] = (uint8_t)(1 + j);
        b.scales[j + 4] = (uint8_t)(9 + j);
        b.scales[j + 8] = (uint8_t)((5 + j) | (13 + j) % 16 << 4);
    }
    b.scales[7] |= 1 << 6; /* 16 = 1 << 4 | 0: minimum 7 */
    memset(b.qs, 0x21, sizeof b.qs);
    format_table[FORMAT_q4_k]->to_f32(&b, w, 256);
    for (int j = 0; j < 8; j++)
        ck_assert_float_eq(w[32 * j + 5], (float)((1 + j) * (j % 2 ? 2 : 1) - (9 + j)));
    memset(b.scales, 0xff, sizeof b.scales);
    format_table[FORMAT_q4_k]->to_f32(&b, w, 256);
    ck_assert_float_eq(w[255], 63 * 2 - 63);
}
END_TEST

START_TEST(q3_k_joins_nibbles_and_pairs_of_bits_to_scales)
{
    struct block_q3_k b = {.d = ONE};
    float w[256];

    /* Group 13: high nibble of byte 5, bits 6, 7 of byte 9; 0b10_0111 - 32 = 7.  The others are -32. */
    b.scales[5] = 0x70;
    b.scales[9] = 0x80;
    b.qs[32 + 16] = 0x20; /* weight 128 + 64 + 16, code 2 */
    b.hmask[16] = 1 << 6;
    format_table[FORMAT_q3_k]->to_f32(&b, w, 256);
    ck_assert_float_eq(w[208], 7 * 2);
    ck_assert_float_eq(w[209], 7 * -4);
    ck_assert_float_eq(w[0], -32 * -4);
}
END_TEST

START_TEST(q6_k_walks_two_halves_of_128)
{
    struct block_q6_k b = {.d = ONE};
    float w[256];

    memset(b.scales, 1, sizeof b.scales);
    b.scales[14] = -2;
    b.ql[64 + 32 + 7] = 0x90; /* weight 128 + 96 + 7: part 3 of the second half */
    b.qh[32 + 7] = 0xc0;
    format_table[FORMAT_q6_k]->to_f32(&b, w, 256);
    ck_assert_float_eq(w[231], -2 * (9 + 48 - 32));
    ck_assert_float_eq(w[0], -32);
}
END_TEST

START_TEST(tq1_0_reads_five_digits_from_a_byte)
{
    static const float want[5] = {-1, 0, 1, -1, 0};
    struct block_tq1_0 b = {.d = ONE};
    float w[256];

    b.qs[0] = (uint8_t)((0 * 81 + 1 * 27 + 2 * 9 + 0 * 3 + 1) * 256 / 243 + 1);
    format_table[FORMAT_tq1_0]->to_f32(&b, w, 256);
    for (int n = 0; n < 5; n++)
        ck_assert_float_eq(w[32 * n], want[n]);
}
END_TEST

START_TEST(mxfp4_has_the_fifteen_values_of_e2m1)
{
    static const float e2m1[16] = {0, 0.5f,  1,  1.5f,  2,  3,  4,  6,
                                   0, -0.5f, -1, -1.5f, -2, -3, -4, -6};
    struct block_mxfp4 b = {.e = 128};
    float w[32];

    for (int i = 0; i < 16; i++)
        b.qs[i] = (uint8_t)(i | i << 4);
    format_table[FORMAT_mxfp4]->to_f32(&b, w, 32);
    for (int i = 0; i < 32; i++)
        ck_assert_float_eq(w[i], 2 * e2m1[i % 16]);
}
END_TEST

START_TEST(signs_of_seven_bits_have_even_parity)
{
    for (unsigned code = 0; code < 256; code++) {
        ck_assert_int_eq(__builtin_parity(iq_signs(code)), 0);
        ck_assert_uint_eq(iq_signs(code) & 127, code & 127);
    }
}
END_TEST

/* Points are found by rising words, so a swapped or doubled one would show. */
START_TEST(grids_have_distinct_points_of_the_right_levels)
{
    static const struct {
        const uint64_t *points;
        int n;
    } grids[] = {{iq2_xxs_grid, 256}, {iq2_xs_grid, 512}, {iq2_s_grid, 1024}};

    for (int g = 0; g < 3; g++)
        for (int k = 0; k < grids[g].n; k++) {
            ck_assert(k == 0 || grids[g].points[k] > grids[g].points[k - 1]);
            for (int i = 0; i < 8; i++) {
                int level = (int)(grids[g].points[k] >> 8 * i & 255);

                ck_assert(level == 8 || level == 25 || level == 43);
            }
        }
    for (int k = 1; k < 2048; k++)
        ck_assert(iq1_grid[k] + 0x0101010101010101 != iq1_grid[k - 1] + 0x0101010101010101);
    for (int k = 1; k < 256; k++)
        ck_assert_uint_gt(iq3_xxs_grid[k], iq3_xxs_grid[k - 1]);
    for (int k = 1; k < 512; k++)
        ck_assert_uint_gt(iq3_s_grid[k], iq3_s_grid[k - 1]);
}
END_TEST

/* What the kernels' bounds on integer sums rest on: no byte of a file can break them. */
START_TEST(random_bytes_unpack_within_the_bounds)
{
    const struct format *f = format_of(unpackers[_i].id);
    uint8_t block[256 + 1];

    srand(7);
    for (int round = 0; round < 2000; round++) {
        struct unpacked u = {0};
        int fill = round < 4 ? (int[]){0x00, 0xff, 0x80, 0x7f}[round] : -1;

        for (size_t i = 0; i < sizeof block; i++)
            block[i] = (uint8_t)(fill < 0 ? rand() >> 7 : fill);
        unpackers[_i].unpack(block + round % 2, &u); /* at odd addresses too */
        for (uint32_t j = 0; f->block_elems == 256 && j < 16; j++) {
            int64_t most = 0;

            for (int i = 0; i < 16; i++)
                most += abs(u.q[16 * j + i]) * 127;
            ck_assert_int_lt(most * llabs(u.sc[j]) * 16, INT32_MAX);
            ck_assert(u.mins[j] >= 0 && u.mins[j] <= 63);
        }
    }
}
END_TEST

START_TEST(a_decoder_writes_its_row_and_nothing_else)
{
    const struct format *f = format_of((enum format_id)_i);
    size_t n = 3 * f->block_elems;
    uint8_t *bytes = calloc(1, format_row_bytes(f, n) + 1);
    float *out = malloc((n + 2) * sizeof *out);

    for (size_t i = 0; i < n + 2; i++)
        out[i] = 12345.5f;
    f->to_f32(bytes + 1, out + 1, n);
    ck_assert_float_eq(out[0], 12345.5f);
    ck_assert_float_eq(out[n + 1], 12345.5f);
    for (size_t i = 1; i <= n; i++)
        ck_assert_float_ne(out[i], 12345.5f);
    free(bytes);
    free(out);
}
END_TEST

TCase *tcase_formats_decode(void)
{
    TCase *tc = tcase_create("decode");

    tcase_add_test(tc, q4_0_keeps_the_first_half_in_the_low_nibbles);
    tcase_add_test(tc, q5_1_takes_its_fifth_bit_from_the_place_of_the_weight);
    tcase_add_test(tc, q4_k_unpacks_six_bit_scales_and_minima);
    tcase_add_test(tc, q3_k_joins_nibbles_and_pairs_of_bits_to_scales);
    tcase_add_test(tc, q6_k_walks_two_halves_of_128);
    tcase_add_test(tc, tq1_0_reads_five_digits_from_a_byte);
    tcase_add_test(tc, mxfp4_has_the_fifteen_values_of_e2m1);
    tcase_add_test(tc, signs_of_seven_bits_have_even_parity);
    tcase_add_test(tc, grids_have_distinct_points_of_the_right_levels);
    tcase_add_loop_test(tc, random_bytes_unpack_within_the_bounds, 0, N_UNPACKERS);
    tcase_add_loop_test(tc, a_decoder_writes_its_row_and_nothing_else, 0, FORMAT_COUNT);
    return tc;
}
