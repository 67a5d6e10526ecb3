/* exp and log of our own against libm, and the numbers of the generator. */
#include <check.h>
#include <math.h>

#include "daemon/sampling/exact.h"
#include "daemon/sampling/rng.h"

TCase *tcase_sampling_exact(void);

START_TEST(exp_is_as_good_as_the_one_of_libm)
{
    for (double x = -740; x < 705; x += 0.173) {
        double want = exp(x);

        ck_assert_msg(fabs(exact_exp(x) - want) <= 1e-15 * want + 5e-324, "exp(%g)", x);
    }
    ck_assert(exact_exp(0.0) == 1.0);
    ck_assert(exact_exp(-1000) == 0.0);
    ck_assert(exact_exp(-INFINITY) == 0.0);
    ck_assert(exact_exp(NAN) == 0.0);
    ck_assert(isinf(exact_exp(1000)));
}
END_TEST

START_TEST(log_is_as_good_as_the_one_of_libm)
{
    for (double x = 1e-310; x < 1e300; x *= 1.37)
        ck_assert_msg(fabs(exact_log(x) - log(x)) <= 1e-15 * fabs(log(x)) + 1e-16, "log(%g)", x);
    ck_assert(exact_log(1.0) == 0.0);
    ck_assert(isinf(exact_log(0.0)));
}
END_TEST

/* The bits of some values, so that another machine or compiler shows itself. */
START_TEST(exp_and_log_give_known_bits)
{
    ck_assert(exact_exp(-1.5) == 0x1.c8f87724b5c1dp-3);
    ck_assert(exact_exp(-20.25) == 0x1.b93de1e27ca3bp-30);
    ck_assert(exact_log(10.0) == 0x1.26bb1bbb55516p+1);
}
END_TEST

START_TEST(the_generator_repeats_itself_by_seed_and_spreads)
{
    struct rng a, b;
    double sum = 0;

    rng_seed(&a, 1);
    rng_seed(&b, 1);
    for (int i = 0; i < 10000; i++) {
        double u = rng_unit(&a);

        ck_assert(u >= 0.0 && u < 1.0);
        ck_assert(u == rng_unit(&b));
        sum += u;
    }
    ck_assert(fabs(sum / 10000 - 0.5) < 0.02);
    rng_seed(&b, 2);
    rng_seed(&a, 1);
    ck_assert(rng_next(&a) != rng_next(&b));
}
END_TEST

TCase *tcase_sampling_exact(void)
{
    TCase *tc = tcase_create("exact");

    tcase_add_test(tc, exp_is_as_good_as_the_one_of_libm);
    tcase_add_test(tc, log_is_as_good_as_the_one_of_libm);
    tcase_add_test(tc, exp_and_log_give_known_bits);
    tcase_add_test(tc, the_generator_repeats_itself_by_seed_and_spreads);
    return tc;
}
