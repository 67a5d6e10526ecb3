/* Log probabilities, and the ranges of the options. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "daemon/sampling/sampler.h"

TCase *tcase_sampling_logprobs(void);

START_TEST(logprobs_are_those_of_the_plain_softmax)
{
    const float logits[] = {0.0f, 1.0f, 2.0f, 2.0f, NAN, -INFINITY};
    double ln_total = log(1 + exp(1.0) + 2 * exp(2.0));
    struct candidate top[3];

    ck_assert(fabs(sampling_logprobs(logits, 6, 1, top, 3) - (1 - ln_total)) < 1e-6);
    ck_assert_int_eq(top[0].id, 2);
    ck_assert_int_eq(top[1].id, 3);
    ck_assert_int_eq(top[2].id, 1);
    ck_assert(fabs(top[0].p - (2 - ln_total)) < 1e-6);
}
END_TEST

START_TEST(what_cannot_occur_has_a_logprob_that_json_can_carry)
{
    const float logits[] = {0.0f, NAN, -INFINITY};
    struct candidate top[4];

    ck_assert(sampling_logprobs(logits, 3, 1, top, 0) == SAMPLING_LOGPROB_NEVER);
    ck_assert(sampling_logprobs(logits, 3, 2, top, 4) == SAMPLING_LOGPROB_NEVER);
    ck_assert(top[0].p == 0.0f);
    ck_assert(top[2].p == SAMPLING_LOGPROB_NEVER);
    ck_assert_int_eq(top[3].id, -1);
    ck_assert(sampling_logprobs(logits, 3, 99, NULL, 0) == SAMPLING_LOGPROB_NEVER);
}
END_TEST

START_TEST(the_defaults_pass_the_check)
{
    struct sampling_options o;
    struct err err;

    sampling_defaults(&o);
    ck_assert_int_eq(sampling_check(&o, &err), 0);
}
END_TEST

START_TEST(a_wrong_value_is_named)
{
    struct sampling_options o;
    struct err err;

    sampling_defaults(&o);
    o.top_p = 1.5f;
    ck_assert_int_eq(sampling_check(&o, &err), -ERR_INVALID);
    ck_assert_str_eq(err.param, "top_p");
    sampling_defaults(&o);
    o.min_p = NAN;
    ck_assert_int_eq(sampling_check(&o, &err), -ERR_INVALID);
    ck_assert_str_eq(err.param, "min_p");
    sampling_defaults(&o);
    o.mirostat = 1;
    ck_assert_int_eq(sampling_check(&o, &err), -ERR_INVALID);
    ck_assert_str_eq(err.param, "mirostat");
}
END_TEST

TCase *tcase_sampling_logprobs(void)
{
    TCase *tc = tcase_create("logprobs");

    tcase_add_test(tc, logprobs_are_those_of_the_plain_softmax);
    tcase_add_test(tc, what_cannot_occur_has_a_logprob_that_json_can_carry);
    tcase_add_test(tc, the_defaults_pass_the_check);
    tcase_add_test(tc, a_wrong_value_is_named);
    return tc;
}
