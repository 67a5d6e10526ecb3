/* What was said before changes the logits. */
#include <check.h>
#include <math.h>

#include "common/alloc.h"
#include "daemon/sampling/sampler.h"

TCase *tcase_sampling_penalties(void);

#define N 8

static struct sampling_options plain(void)
{
    struct sampling_options o;

    sampling_defaults(&o);
    o.temperature = 1.0f;
    o.top_k = 0;
    o.top_p = 1.0f;
    o.min_p = 0.0f;
    return o;
}

/* The logit of id after the chain, when all logits were `before`. */
static float logit_after(struct sampler *s, float before, int32_t id)
{
    float logits[N];
    const struct candidate *c;
    size_t n;

    for (size_t i = 0; i < N; i++)
        logits[i] = before;
    sampler_choose(s, logits);
    c = sampler_survivors(s, &n);
    for (size_t i = 0; i < n; i++)
        if (c[i].id == id)
            return c[i].logit;
    return -INFINITY;
}

static void accept_all(struct sampler *s, const char *digits)
{
    for (; *digits; digits++)
        sampler_accept(s, *digits - '0');
}

START_TEST(repeat_divides_positive_logits_and_multiplies_negative_ones)
{
    struct sampling_options o = plain();
    struct sampler *s;

    o.repeat_penalty = 2.0f;
    s = sampler_create(&o, N, 16);
    accept_all(s, "334");
    ck_assert(logit_after(s, 3.0f, 3) == 1.5f);
    ck_assert(logit_after(s, -3.0f, 3) == -6.0f);
    ck_assert(logit_after(s, 3.0f, 2) == 3.0f);
    sampler_destroy(s);
}
END_TEST

START_TEST(frequency_counts_and_presence_does_not)
{
    struct sampling_options o = plain();
    struct sampler *s;

    o.frequency_penalty = 0.5f;
    o.presence_penalty = 0.25f;
    s = sampler_create(&o, N, 16);
    accept_all(s, "3343");
    ck_assert(logit_after(s, 2.0f, 3) == 0.25f);
    ck_assert(logit_after(s, 2.0f, 4) == 1.25f);
    ck_assert(logit_after(s, 2.0f, 3) == 0.25f);
    sampler_destroy(s);
}
END_TEST

START_TEST(only_the_last_ids_are_looked_at)
{
    struct sampling_options o = plain();
    struct sampler *s;

    o.presence_penalty = 1.0f;
    o.repeat_last_n = 2;
    s = sampler_create(&o, N, 16);
    accept_all(s, "123");
    ck_assert(logit_after(s, 2.0f, 1) == 2.0f);
    ck_assert(logit_after(s, 2.0f, 2) == 1.0f);
    ck_assert(logit_after(s, 2.0f, 3) == 1.0f);
    sampler_destroy(s);
}
END_TEST

START_TEST(a_history_that_overflows_still_counts_right)
{
    struct sampling_options o = plain();
    struct sampler *s;
    char digits[2] = "0";

    o.frequency_penalty = 1.0f;
    o.repeat_last_n = 4;
    s = sampler_create(&o, N, 6);
    for (int i = 0; i < 99; i++) {
        digits[0] = (char)('0' + i % 5);
        accept_all(s, digits);
    }
    /* The last four were 0 1 2 3 after …4 (99 % 5 = 4): i = 95 … 98. */
    ck_assert(logit_after(s, 0.0f, 4) == 0.0f);
    for (int32_t id = 0; id < 4; id++)
        ck_assert(logit_after(s, 0.0f, id) == -1.0f);
    sampler_destroy(s);
}
END_TEST

START_TEST(an_id_outside_the_vocabulary_is_passed_over)
{
    struct sampling_options o = plain();
    struct sampler *s;

    o.presence_penalty = 1.0f;
    s = sampler_create(&o, N, 4);
    sampler_accept(s, -1);
    sampler_accept(s, N);
    ck_assert(logit_after(s, 2.0f, 0) == 2.0f);
    sampler_destroy(s);
}
END_TEST

static struct sampler *dry(const char *said, const int32_t *breakers, size_t n_breakers)
{
    struct sampling_options o = plain();
    struct sampler *s;

    o.dry_multiplier = 1.0f;
    o.dry_base = 2.0f;
    o.dry_allowed_length = 2;
    s = sampler_create(&o, N, 32);
    sampler_set_dry_breakers(s, breakers, n_breakers);
    accept_all(s, said);
    return s;
}

START_TEST(dry_punishes_what_would_make_a_repeat_longer)
{
    struct sampler *s = dry("1234123", NULL, 0);

    /* "123" is repeated, 4 would go on: 2^(3 − 2). */
    ck_assert(fabsf(logit_after(s, 0.0f, 4) + 2.0f) < 1e-6f);
    ck_assert(logit_after(s, 0.0f, 1) == 0.0f);
    ck_assert(logit_after(s, 0.0f, 5) == 0.0f);
    sampler_destroy(s);
}
END_TEST

START_TEST(dry_takes_the_longest_repeat_of_an_id)
{
    struct sampler *s = dry("5234612347234", NULL, 0);

    /* "234" stands before 6 and before 7, "1234" does not end here: 2^(3 − 2) each. */
    ck_assert(fabsf(logit_after(s, 0.0f, 6) + 2.0f) < 1e-6f);
    ck_assert(fabsf(logit_after(s, 0.0f, 7) + 2.0f) < 1e-6f);
    sampler_destroy(s);
}
END_TEST

START_TEST(dry_lets_short_repeats_be)
{
    struct sampler *s = dry("12314561", NULL, 0);

    ck_assert(logit_after(s, 0.0f, 2) == 0.0f);
    sampler_destroy(s);
}
END_TEST

START_TEST(dry_does_not_reach_over_a_breaker)
{
    const int32_t breakers[] = {2, -5, 900};
    struct sampler *s = dry("1234123", breakers, ARRAY_LEN(breakers));

    /* Only "3" is left of the repeat, shorter than allowed. */
    ck_assert(logit_after(s, 0.0f, 4) == 0.0f);
    sampler_destroy(s);
}
END_TEST

START_TEST(dry_counts_overlapping_repeats)
{
    struct sampler *s = dry("11111", NULL, 0);

    /* Four 1s before the last one of the five: 2^(4 − 2). */
    ck_assert(fabsf(logit_after(s, 0.0f, 1) + 4.0f) < 1e-6f);
    sampler_destroy(s);
}
END_TEST

TCase *tcase_sampling_penalties(void)
{
    TCase *tc = tcase_create("penalties");

    tcase_add_test(tc, repeat_divides_positive_logits_and_multiplies_negative_ones);
    tcase_add_test(tc, frequency_counts_and_presence_does_not);
    tcase_add_test(tc, only_the_last_ids_are_looked_at);
    tcase_add_test(tc, a_history_that_overflows_still_counts_right);
    tcase_add_test(tc, an_id_outside_the_vocabulary_is_passed_over);
    tcase_add_test(tc, dry_punishes_what_would_make_a_repeat_longer);
    tcase_add_test(tc, dry_takes_the_longest_repeat_of_an_id);
    tcase_add_test(tc, dry_lets_short_repeats_be);
    tcase_add_test(tc, dry_does_not_reach_over_a_breaker);
    tcase_add_test(tc, dry_counts_overlapping_repeats);
    return tc;
}
