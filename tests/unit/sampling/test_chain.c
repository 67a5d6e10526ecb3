/* The chain as a whole: order, greedy, wrong numbers, repeatability. */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "common/alloc.h"
#include "daemon/sampling/sampler.h"

TCase *tcase_sampling_chain(void);

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

static int32_t choose_once(const struct sampling_options *o, const float *logits, size_t n)
{
    struct sampler *s = sampler_create(o, n, 16);
    int32_t id = sampler_choose(s, logits);

    sampler_destroy(s);
    return id;
}

static size_t survivors(const struct sampling_options *o, const float *logits, size_t n,
                        struct candidate *out)
{
    struct sampler *s = sampler_create(o, n, 16);
    const struct candidate *c;
    size_t kept;

    sampler_choose(s, logits);
    c = sampler_survivors(s, &kept);
    for (size_t i = 0; i < kept; i++)
        out[i] = c[i];
    sampler_destroy(s);
    return kept;
}

START_TEST(greedy_takes_the_lowest_id_among_equal_logits)
{
    const float logits[] = {1, 5, 3, 5, 5, -2, 0, 4, 5, 5};
    struct sampling_options o = plain();

    o.temperature = 0;
    ck_assert_int_eq(choose_once(&o, logits, ARRAY_LEN(logits)), 1);
}
END_TEST

START_TEST(greedy_finds_the_best_at_every_place)
{
    struct sampling_options o = plain();
    float logits[21];

    o.temperature = 0;
    for (size_t n = 1; n <= ARRAY_LEN(logits); n++)
        for (size_t best = 0; best < n; best++) {
            for (size_t i = 0; i < n; i++)
                logits[i] = i == best ? -1.0f : -2.0f;
            ck_assert_int_eq(choose_once(&o, logits, n), (int32_t)best);
        }
}
END_TEST

START_TEST(a_nan_is_never_chosen_while_there_is_a_number)
{
    const float logits[] = {NAN, -3, NAN, -INFINITY, NAN};
    struct sampling_options o = plain();

    ck_assert_int_eq(choose_once(&o, logits, ARRAY_LEN(logits)), 1);
    o.top_k = 2;
    ck_assert_int_eq(choose_once(&o, logits, ARRAY_LEN(logits)), 1);
    o.temperature = 0;
    ck_assert_int_eq(choose_once(&o, logits, ARRAY_LEN(logits)), 1);
}
END_TEST

START_TEST(with_no_number_at_all_the_choice_is_id_0)
{
    const float logits[] = {NAN, -INFINITY, NAN};
    struct sampling_options o;

    sampling_defaults(&o);
    ck_assert_int_eq(choose_once(&o, logits, ARRAY_LEN(logits)), 0);
    o.temperature = 0;
    ck_assert_int_eq(choose_once(&o, logits, ARRAY_LEN(logits)), 0);
    o.temperature = 1;
    o.mirostat = 2;
    ck_assert_int_eq(choose_once(&o, logits, ARRAY_LEN(logits)), 0);
}
END_TEST

START_TEST(an_infinite_logit_wins_without_harm)
{
    const float logits[] = {1, INFINITY, 2, 3};
    struct sampling_options o;

    sampling_defaults(&o);
    ck_assert_int_eq(choose_once(&o, logits, ARRAY_LEN(logits)), 1);
}
END_TEST

START_TEST(the_same_seed_gives_the_same_ids)
{
    struct sampling_options o = plain();
    float logits[64];
    struct sampler *a, *b, *c;
    int differ = 0;

    for (size_t i = 0; i < ARRAY_LEN(logits); i++)
        logits[i] = (float)(i % 7) * 0.25f;
    o.seed = 42;
    a = sampler_create(&o, ARRAY_LEN(logits), 8);
    b = sampler_create(&o, ARRAY_LEN(logits), 8);
    o.seed = 43;
    c = sampler_create(&o, ARRAY_LEN(logits), 8);
    for (int i = 0; i < 50; i++) {
        int32_t id = sampler_choose(a, logits);

        ck_assert_int_eq(id, sampler_choose(b, logits));
        differ += id != sampler_choose(c, logits);
    }
    ck_assert_int_gt(differ, 20);
    sampler_destroy(a);
    sampler_destroy(b);
    sampler_destroy(c);
}
END_TEST

START_TEST(ids_are_drawn_by_their_shares)
{
    const float logits[] = {0.0f, 1.09861229f, -INFINITY}; /* 1 : 3 : 0 */
    struct sampling_options o = plain();
    struct sampler *s = sampler_create(&o, 3, 8);
    int count[3] = {0};

    for (int i = 0; i < 4000; i++)
        count[sampler_choose(s, logits)]++;
    ck_assert_int_eq(count[2], 0);
    ck_assert_int_gt(count[1], 2850);
    ck_assert_int_lt(count[1], 3150);
    sampler_destroy(s);
}
END_TEST

START_TEST(a_bias_of_minus_infinity_bans)
{
    const float logits[] = {5, 1, 2};
    struct sampling_bias bias[] = {{.id = 0, .bias = -INFINITY}, {.id = 7, .bias = 1}, {.id = -1}};
    struct sampling_options o = plain();
    struct candidate c[3];

    o.bias = bias;
    o.n_bias = ARRAY_LEN(bias);
    ck_assert_uint_eq(survivors(&o, logits, 3, c), 2);
    ck_assert_int_eq(c[0].id, 2);
    o.temperature = 0;
    ck_assert_int_eq(choose_once(&o, logits, 3), 2);
}
END_TEST

START_TEST(a_bias_shifts_a_logit)
{
    const float logits[] = {1, 0, 0};
    struct sampling_bias bias[] = {{.id = 2, .bias = 4}};
    struct sampling_options o = plain();

    o.bias = bias;
    o.n_bias = 1;
    o.temperature = 0;
    ck_assert_int_eq(choose_once(&o, logits, 3), 2);
}
END_TEST

START_TEST(top_k_keeps_the_lower_id_of_equals)
{
    const float logits[] = {1, 2, 2, 2, 2, 0};
    struct sampling_options o = plain();
    struct candidate c[6];

    o.top_k = 2;
    ck_assert_uint_eq(survivors(&o, logits, 6, c), 2);
    ck_assert_int_eq(c[0].id, 1);
    ck_assert_int_eq(c[1].id, 2);
}
END_TEST

/* The list is only sorted as far as it must be: it must not show. */
START_TEST(top_p_of_a_large_vocabulary_equals_a_full_sort)
{
    enum { N = 5000 };
    struct sampling_options o = plain();
    float *logits = xcalloc(N, sizeof *logits);
    struct candidate *c = xcalloc(N, sizeof *c);
    size_t kept;
    double sum = 0;

    srand(7);
    for (size_t i = 0; i < N; i++)
        logits[i] = (float)(rand() % 1000) / 250.0f;
    o.top_p = 0.6f;
    kept = survivors(&o, logits, N, c);
    ck_assert_uint_gt(kept, 100);
    ck_assert_uint_lt(kept, N);
    for (size_t i = 1; i < kept; i++)
        ck_assert(c[i - 1].logit > c[i].logit ||
                  (c[i - 1].logit == c[i].logit && c[i - 1].id < c[i].id));
    for (size_t i = 0; i < N; i++) {
        bool is_kept = false;

        for (size_t k = 0; k < kept && !is_kept; k++)
            is_kept = c[k].id == (int32_t)i;
        if (!is_kept)
            ck_assert(logits[i] < c[kept - 1].logit ||
                      (logits[i] == c[kept - 1].logit && (int32_t)i > c[kept - 1].id));
    }
    for (size_t i = 0; i < kept; i++)
        sum += c[i].p;
    ck_assert(fabs(sum - 1.0) < 1e-4);
    free(logits);
    free(c);
}
END_TEST

START_TEST(mirostat_holds_the_surprise_near_tau)
{
    enum { N = 1000, STEPS = 2000 };
    struct sampling_options o = plain();
    float logits[N];
    double total = 0, surprise = 0;
    struct sampler *s;

    for (size_t i = 0; i < N; i++) {
        logits[i] = -1.1f * logf((float)(i + 1)); /* Zipf, as in the paper */
        total += exp(logits[i]);
    }
    o.mirostat = 2;
    o.mirostat_tau = 3.0f;
    o.mirostat_eta = 0.1f;
    s = sampler_create(&o, N, 8);
    for (int i = 0; i < STEPS; i++) {
        size_t n;
        const struct candidate *c;
        int32_t id = sampler_choose(s, logits);

        c = sampler_survivors(s, &n);
        for (size_t k = 0; k < n; k++)
            if (c[k].id == id)
                surprise += -log2(c[k].p);
    }
    ck_assert(fabs(surprise / STEPS - 3.0) < 0.2);
    sampler_destroy(s);
}
END_TEST

START_TEST(one_survivor_is_left_when_every_filter_is_at_its_tightest)
{
    const float logits[] = {1, 4, 2, 3};
    struct sampling_options o = plain();
    struct candidate c[4];

    o.typical_p = 0.0f;
    ck_assert_uint_eq(survivors(&o, logits, 4, c), 1);
    o = plain();
    o.top_p = 0.0f;
    ck_assert_uint_eq(survivors(&o, logits, 4, c), 1);
    ck_assert_int_eq(c[0].id, 1);
    o = plain();
    o.min_p = 1.0f;
    ck_assert_uint_eq(survivors(&o, logits, 4, c), 1);
    ck_assert_int_eq(c[0].id, 1);
}
END_TEST

START_TEST(the_bytes_it_says_grow_with_what_is_on)
{
    struct sampling_options o = plain();
    size_t base = sampler_bytes(&o, 1000, 100);

    ck_assert_uint_ge(base, 1000 * (sizeof(struct candidate) + 8) + 400);
    o.dry_multiplier = 0.8f;
    ck_assert_uint_gt(sampler_bytes(&o, 1000, 100), base + 5000);
}
END_TEST

TCase *tcase_sampling_chain(void)
{
    TCase *tc = tcase_create("chain");

    tcase_add_test(tc, greedy_takes_the_lowest_id_among_equal_logits);
    tcase_add_test(tc, greedy_finds_the_best_at_every_place);
    tcase_add_test(tc, a_nan_is_never_chosen_while_there_is_a_number);
    tcase_add_test(tc, with_no_number_at_all_the_choice_is_id_0);
    tcase_add_test(tc, an_infinite_logit_wins_without_harm);
    tcase_add_test(tc, the_same_seed_gives_the_same_ids);
    tcase_add_test(tc, ids_are_drawn_by_their_shares);
    tcase_add_test(tc, a_bias_of_minus_infinity_bans);
    tcase_add_test(tc, a_bias_shifts_a_logit);
    tcase_add_test(tc, top_k_keeps_the_lower_id_of_equals);
    tcase_add_test(tc, top_p_of_a_large_vocabulary_equals_a_full_sort);
    tcase_add_test(tc, mirostat_holds_the_surprise_near_tau);
    tcase_add_test(tc, one_survivor_is_left_when_every_filter_is_at_its_tightest);
    tcase_add_test(tc, the_bytes_it_says_grow_with_what_is_on);
    return tc;
}
