/* The small floats against their definitions: sign, exponent, fraction by ldexp. */
#include <check.h>
#include <math.h>

#include "backends/formats/half.h"

TCase *tcase_formats_half(void);

/* Value of a float of exp_bits and man_bits (bias as IEEE), from the text of the standard. */
static double value_of(unsigned bits, int exp_bits, int man_bits)
{
    int sign = (int)(bits >> (exp_bits + man_bits)) & 1;
    int exp = (int)(bits >> man_bits) & ((1 << exp_bits) - 1);
    int man = (int)bits & ((1 << man_bits) - 1);
    int bias = (1 << (exp_bits - 1)) - 1;
    double v;

    if (exp == (1 << exp_bits) - 1)
        v = man ? NAN : HUGE_VAL;
    else if (exp == 0)
        v = ldexp(man, 1 - bias - man_bits);
    else
        v = ldexp(man + (1 << man_bits), exp - bias - man_bits);
    return sign ? -v : v;
}

static int same(double a, double b)
{
    return isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b);
}

START_TEST(every_f16_has_the_value_of_its_fields)
{
    for (unsigned h = 0; h < 65536; h++)
        ck_assert_msg(same(value_of(h, 5, 10), (double)f16_to_f32((uint16_t)h)), "0x%04x", h);
}
END_TEST

START_TEST(every_bf16_has_the_value_of_its_fields)
{
    for (unsigned h = 0; h < 65536; h++)
        ck_assert_msg(same(value_of(h, 8, 7), (double)bf16_to_f32((uint16_t)h)), "0x%04x", h);
}
END_TEST

START_TEST(every_small_float_survives_the_way_to_f32_and_back)
{
    for (unsigned h = 0; h < 65536; h++) {
        if (!isnan(f16_to_f32((uint16_t)h)))
            ck_assert_uint_eq(f32_to_f16(f16_to_f32((uint16_t)h)), h);
        if (!isnan(bf16_to_f32((uint16_t)h)))
            ck_assert_uint_eq(f32_to_bf16(bf16_to_f32((uint16_t)h)), h);
    }
}
END_TEST

START_TEST(a_nan_stays_one_and_becomes_quiet)
{
    ck_assert(isnan(f16_to_f32(f32_to_f16(NAN))));
    ck_assert(isnan(bf16_to_f32(f32_to_bf16(NAN))));
    /* Signalling, with a payload that a plain cut or rounding would turn into infinity. */
    ck_assert(isnan(f16_to_f32(f32_to_f16(f32_of_bits(0x7f800001)))));
    ck_assert(isnan(bf16_to_f32(f32_to_bf16(f32_of_bits(0xff800001)))));
    ck_assert(isnan(bf16_to_f32(f32_to_bf16(f32_of_bits(0x7fffffff)))));
    ck_assert_uint_eq(f32_bits(f16_to_f32(0x7c01)) & 0x00400000, 0x00400000);
}
END_TEST

/* Every midpoint between neighbours goes to the even one, and a hair to either side decides. */
START_TEST(f32_to_f16_rounds_to_nearest_even)
{
    for (unsigned h = 0; h < 0x7bff; h++) {
        double lo = value_of(h, 5, 10), hi = value_of(h + 1, 5, 10);
        float middle = (float)((lo + hi) / 2); /* exact: one bit more than f16 has */

        ck_assert_uint_eq(f32_to_f16(middle), h % 2 ? h + 1 : h);
        ck_assert_uint_eq(f32_to_f16(-middle), 0x8000 | (h % 2 ? h + 1 : h));
        ck_assert_uint_eq(f32_to_f16(nextafterf(middle, 0)), h);
        ck_assert_uint_eq(f32_to_f16(nextafterf(middle, HUGE_VALF)), h + 1);
    }
    ck_assert_uint_eq(f32_to_f16(nextafterf(65520.0f, 0)), 0x7bff);
    ck_assert_uint_eq(f32_to_f16(65520.0f), 0x7c00);
    ck_assert_uint_eq(f32_to_f16(-HUGE_VALF), 0xfc00);
    ck_assert_uint_eq(f32_to_f16(0x1p-149f), 0);
}
END_TEST

START_TEST(f32_to_bf16_rounds_to_nearest_even)
{
    for (unsigned h = 0; h < 0x7f7f; h++) {
        float middle = f32_of_bits(h << 16 | 0x8000);

        ck_assert_uint_eq(f32_to_bf16(middle), h % 2 ? h + 1 : h);
        ck_assert_uint_eq(f32_to_bf16(nextafterf(middle, 0)), h);
        ck_assert_uint_eq(f32_to_bf16(nextafterf(middle, HUGE_VALF)), h + 1);
    }
}
END_TEST

START_TEST(e8m0_is_a_power_of_two_for_every_code)
{
    for (int e = 0; e < 256; e++)
        ck_assert_double_eq((double)e8m0_half_to_f32((uint8_t)e), ldexp(1, e - 128));
}
END_TEST

START_TEST(ue4m3_is_the_4_3_float_without_its_sign)
{
    for (unsigned x = 0; x < 128; x++) {
        int exp = (int)x >> 3, man = (int)x & 7;
        double want = exp == 0 ? ldexp(man, -9) : ldexp(8 + man, exp - 10);

        if (x == 0x7f)
            want = 0;
        ck_assert_double_eq((double)ue4m3_half_to_f32((uint8_t)x), want / 2);
    }
    ck_assert_double_eq((double)ue4m3_half_to_f32(0xb8), (double)ue4m3_half_to_f32(0x38));
}
END_TEST

TCase *tcase_formats_half(void)
{
    TCase *tc = tcase_create("half");

    tcase_add_test(tc, every_f16_has_the_value_of_its_fields);
    tcase_add_test(tc, every_bf16_has_the_value_of_its_fields);
    tcase_add_test(tc, every_small_float_survives_the_way_to_f32_and_back);
    tcase_add_test(tc, a_nan_stays_one_and_becomes_quiet);
    tcase_add_test(tc, f32_to_f16_rounds_to_nearest_even);
    tcase_add_test(tc, f32_to_bf16_rounds_to_nearest_even);
    tcase_add_test(tc, e8m0_is_a_power_of_two_for_every_code);
    tcase_add_test(tc, ue4m3_is_the_4_3_float_without_its_sign);
    return tc;
}
