/* The bounds that math.h states, against libm. */
#include <check.h>
#include <math.h>
#include <stdint.h>

#include "backends/cpu/math.h"

TCase *tcase_cpu_math(void);

/* Step i of n from lo to hi. */
static float step_from(float lo, float hi, int i, int n)
{
    return lo + (hi - lo) * ((float)i / (float)n);
}

START_TEST(exp_is_within_its_bound_where_it_is_normal)
{
    const int n = 2000000;
    double worst = 0;

    for (int i = 0; i <= n; i++) {
        float x = step_from(-87.3f, 88.7f, i, n);
        double want = exp((double)x);

        worst = fmax(worst, fabs((double)math_exp(x) - want) / want);
    }
    ck_assert_msg(worst <= 1.2e-7, "worst relative error %g", worst);
}
END_TEST

START_TEST(exp_ends_in_zero_and_infinity)
{
    ck_assert(math_exp(0.0f) == 1.0f);
    ck_assert(math_exp(-1000.0f) == 0.0f);
    ck_assert(math_exp(-INFINITY) == 0.0f);
    ck_assert(isinf(math_exp(1000.0f)));
    ck_assert(isinf(math_exp(INFINITY)));
    ck_assert(isnan(math_exp(NAN)));
    /* Subnormal: the nearest or its neighbour. */
    ck_assert(fabs((double)math_exp(-95.0f) - exp(-95.0)) <= 0x1p-149);
}
END_TEST

START_TEST(tanh_is_within_its_bound)
{
    const int n = 1000000;
    double worst = 0;

    for (int i = 0; i <= n; i++) {
        float x = step_from(-12.0f, 12.0f, i, n);
        double want = tanh((double)x);

        if (want != 0)
            worst = fmax(worst, fabs((double)math_tanh(x) / want - 1));
    }
    ck_assert_msg(worst <= 3e-7, "worst relative error %g", worst);
    ck_assert(math_tanh(1000.0f) == 1.0f);
    ck_assert(math_tanh(-1000.0f) == -1.0f);
    ck_assert(isnan(math_tanh(NAN)));
}
END_TEST

START_TEST(silu_and_gelu_are_within_their_bounds)
{
    const int n = 1000000;
    double silu = 0, gelu = 0;

    for (int i = 0; i <= n; i++) {
        float f = step_from(-30.0f, 30.0f, i, n);
        double x = (double)f, most = fmax(1, fabs(x));

        silu = fmax(silu, fabs((double)math_silu(f) - x / (1 + exp(-x))) / most);
        gelu = fmax(gelu, fabs((double)math_gelu(f) -
                               0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)))) /
                              most);
    }
    ck_assert_msg(silu <= 4e-7, "worst error of silu %g", silu);
    ck_assert_msg(gelu <= 4e-7, "worst error of gelu %g", gelu);
}
END_TEST

START_TEST(double_exp_and_log_are_within_their_bounds)
{
    double worst_exp = 0, worst_log = 0;

    for (int i = -7000; i <= 7000; i++) {
        double x = i * 0.1001, y = exp(x / 10);
        double l = log(y);

        worst_exp = fmax(worst_exp, fabs(math_exp64(x) / exp(x) - 1));
        if (fabs(l) > 0.01)
            worst_log = fmax(worst_log, fabs(math_log64(y) / l - 1));
    }
    ck_assert_msg(worst_exp <= 1e-15, "worst relative error of exp %g", worst_exp);
    ck_assert_msg(worst_log <= 1e-15, "worst relative error of log %g", worst_log);
}
END_TEST

START_TEST(sin_and_cos_are_within_their_bound)
{
    double worst = 0;

    for (int i = -1000000; i <= 1000000; i++) {
        double x = i * 1.0481 + i * 1e-7, s, c;

        math_sincos64(x, &s, &c);
        worst = fmax(worst, fmax(fabs(s - sin(x)), fabs(c - cos(x))));
    }
    ck_assert_msg(worst <= 5e-16, "worst error %g", worst);
}
END_TEST

TCase *tcase_cpu_math(void)
{
    TCase *tc = tcase_create("math");

    tcase_add_test(tc, exp_is_within_its_bound_where_it_is_normal);
    tcase_add_test(tc, exp_ends_in_zero_and_infinity);
    tcase_add_test(tc, tanh_is_within_its_bound);
    tcase_add_test(tc, silu_and_gelu_are_within_their_bounds);
    tcase_add_test(tc, double_exp_and_log_are_within_their_bounds);
    tcase_add_test(tc, sin_and_cos_are_within_their_bound);
    return tc;
}
