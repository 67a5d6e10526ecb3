/* Evaluating: one answer whatever the batch, the threads, the rows wanted; errors and cancel. */
#include <check.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "tests/unit/model/tiny.h"

TCase *tcase_model_eval(void);

#define N 300 /* more than a chunk of the cache */

static const struct model_options options = {.n_ctx = 512, .n_batch = 512, .n_out = 512};
static int32_t ids[N];

static void set_up(void)
{
    tiny_ids(ids, N);
}

static size_t logits_bytes(size_t n)
{
    return n * TINY_N_VOCAB * sizeof(float);
}

START_TEST(a_prompt_in_pieces_has_the_bits_of_the_whole)
{
    static const size_t steps[] = {1, 7, 64, 255, 257};
    struct tiny_model o = {.family = tiny_families[_i],
                           .fmt = format_of(FORMAT_q4_k),
                           .fmt2 = format_of(FORMAT_q6_k),
                           .seed = 3};
    struct tiny_engine e = tiny_load(&o, &options, 2, NULL);
    float *whole = tiny_logits(&e, ids, N, N);

    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        float *pieces = tiny_logits(&e, ids, N, steps[i]);

        ck_assert_msg(memcmp(whole, pieces, logits_bytes(N)) == 0, "pieces of %zu differ",
                      steps[i]);
        free(pieces);
    }
    free(whole);
    tiny_close(&e);
}
END_TEST

START_TEST(threads_do_not_change_a_bit)
{
    struct tiny_model o = {.family = tiny_families[_i], .fmt = format_of(FORMAT_q8_0), .seed = 4};
    struct tiny_engine one = tiny_load(&o, &options, 1, NULL),
                       three = tiny_load(&o, &options, 3, NULL);
    float *a = tiny_logits(&one, ids, 100, 100), *b = tiny_logits(&three, ids, 100, 33);

    ck_assert_int_eq(memcmp(a, b, logits_bytes(100)), 0);
    free(a);
    free(b);
    tiny_close(&one);
    tiny_close(&three);
}
END_TEST

START_TEST(logits_move_with_the_input_and_are_finite)
{
    struct tiny_model o = {.family = tiny_families[_i], .seed = 5};
    struct tiny_engine e = tiny_load(&o, &options, 2, NULL);
    float *a = tiny_logits(&e, ids, 40, 40), *b;
    size_t last = 39 * TINY_N_VOCAB;

    for (size_t i = 0; i < 40 * TINY_N_VOCAB; i++)
        ck_assert(isfinite(a[i]));
    ids[0] ^= 1; /* the first token is seen by the last position */
    b = tiny_logits(&e, ids, 40, 40);
    ck_assert_int_ne(memcmp(a + last, b + last, TINY_N_VOCAB * sizeof *a), 0);
    free(a);
    free(b);
    tiny_close(&e);
}
END_TEST

START_TEST(wanted_rows_are_those_of_all_rows_and_none_costs_nothing_of_the_answer)
{
    struct tiny_model o = {.family = "qwen3", .seed = 6};
    struct tiny_engine e = tiny_load(&o, &options, 2, NULL);
    float *all = tiny_logits(&e, ids, 50, 50);
    const int32_t rows[] = {3, 17, 49}, last = 9;
    const float *some = NULL;
    struct err err = {0};

    sequence_truncate(model_sequence(e.m), 0);
    ck_assert_int_eq(model_eval(e.m, ids, 50, rows, 3, NULL, &some, &err), 0);
    for (size_t i = 0; i < 3; i++)
        ck_assert_mem_eq(some + i * TINY_N_VOCAB, all + (size_t)rows[i] * TINY_N_VOCAB,
                         TINY_N_VOCAB * sizeof *all);
    sequence_truncate(model_sequence(e.m), 0);
    ck_assert_int_eq(model_eval(e.m, ids, 40, NULL, 0, NULL, &some, &err), 0);
    ck_assert_ptr_null(some);
    ck_assert_int_eq(model_eval(e.m, ids + 40, 10, &last, 1, NULL, &some, &err), 0);
    ck_assert_mem_eq(some, all + 49 * TINY_N_VOCAB, TINY_N_VOCAB * sizeof *all);
    free(all);
    tiny_close(&e);
}
END_TEST

START_TEST(a_sequence_that_was_cut_back_answers_as_if_it_had_never_gone_on)
{
    struct tiny_model o = {.family = "llama", .seed = 7};
    struct tiny_engine e = tiny_load(&o, &options, 2, NULL);
    float *all = tiny_logits(&e, ids, 60, 60);
    const int32_t last = 29;
    const float *again = NULL;
    struct err err = {0};

    ck_assert_uint_eq(sequence_common(model_sequence(e.m), ids, 60), 60);
    sequence_truncate(model_sequence(e.m), 30);
    ck_assert_int_eq(model_eval(e.m, ids + 30, 30, &last, 1, NULL, &again, &err), 0);
    ck_assert_mem_eq(again, all + 59 * TINY_N_VOCAB, TINY_N_VOCAB * sizeof *all);
    free(all);
    tiny_close(&e);
}
END_TEST

static _Atomic bool cancel_flag;
static int ticks, cancel_at;

static void tick(void *arg)
{
    (void)arg;
    if (++ticks == cancel_at)
        cancel_flag = true;
}

START_TEST(cancel_between_layers_leaves_the_sequence_as_it_was)
{
    struct tiny_model o = {.family = "llama", .n_layers = 4, .seed = 8};
    struct tiny_engine e = tiny_load(&o, &options, 2, NULL);
    float *all = tiny_logits(&e, ids, 60, 60);
    const int32_t last = 29;
    const float *logits = NULL;
    struct err err = {0};

    model_set_tick(e.m, tick, NULL);
    sequence_truncate(model_sequence(e.m), 30);
    for (cancel_at = 1; cancel_at <= 6; cancel_at++) {
        ticks = 0;
        cancel_flag = false;
        ck_assert_int_eq(model_eval(e.m, ids + 40, 20, NULL, 0, &cancel_flag, &logits, &err) == 0,
                         cancel_at > 5); /* before the layers, and at each of four */
        if (cancel_at > 5)
            sequence_truncate(model_sequence(e.m), 30);
        ck_assert_uint_eq(sequence_length(model_sequence(e.m)), 30);
    }
    model_set_tick(e.m, NULL, NULL);
    ck_assert_int_eq(model_eval(e.m, ids + 30, 30, &last, 1, NULL, &logits, &err), 0);
    ck_assert_mem_eq(logits, all + 59 * TINY_N_VOCAB, TINY_N_VOCAB * sizeof *all);
    free(all);
    tiny_close(&e);
}
END_TEST

START_TEST(batches_that_cannot_be_are_refused_and_change_nothing)
{
    struct tiny_model o = {.family = "llama", .seed = 9};
    struct model_options mo = {.n_ctx = 40, .n_batch = 32, .n_out = 2};
    struct tiny_engine e = tiny_load(&o, &mo, 1, NULL);
    const int32_t bad_ids[] = {1, -1}, big_ids[] = {1, TINY_N_VOCAB};
    const int32_t falling[] = {1, 0}, outside[] = {2}, three[] = {0, 1, 2};
    const float *l;
    struct err err = {0};

    ck_assert_int_eq(model_eval(e.m, ids, 0, NULL, 0, NULL, &l, &err), -ERR_INVALID);
    ck_assert_int_eq(model_eval(e.m, ids, 33, NULL, 0, NULL, &l, &err), -ERR_INVALID);
    ck_assert_int_eq(model_eval(e.m, bad_ids, 2, NULL, 0, NULL, &l, &err), -ERR_INVALID);
    ck_assert_int_eq(model_eval(e.m, big_ids, 2, NULL, 0, NULL, &l, &err), -ERR_INVALID);
    ck_assert_int_eq(model_eval(e.m, ids, 2, falling, 2, NULL, &l, &err), -ERR_INVALID);
    ck_assert_int_eq(model_eval(e.m, ids, 2, outside, 1, NULL, &l, &err), -ERR_INVALID);
    ck_assert_int_eq(model_eval(e.m, ids, 3, three, 3, NULL, &l, &err), -ERR_INVALID);
    ck_assert_uint_eq(sequence_length(model_sequence(e.m)), 0);
    ck_assert_int_eq(model_eval(e.m, ids, 32, NULL, 0, NULL, &l, &err), 0);
    ck_assert_int_eq(model_eval(e.m, ids, 9, NULL, 0, NULL, &l, &err), -ERR_TOO_LARGE);
    ck_assert_ptr_nonnull(strstr(err.text, "40"));
    ck_assert_int_eq(model_eval(e.m, ids, 8, NULL, 0, NULL, &l, &err), 0);
    ck_assert_uint_eq(sequence_length(model_sequence(e.m)), 40);
    tiny_close(&e);
}
END_TEST

/* Largest difference over the largest logit. */
static double distance(const float *a, const float *b, size_t n)
{
    double most = 0, scale = 0;

    for (size_t i = 0; i < n; i++) {
        most = fmax(most, fabs((double)a[i] - b[i]));
        scale = fmax(scale, fabs((double)a[i]));
    }
    return most / scale;
}

START_TEST(smaller_kv_formats_stay_near_the_exact_cache)
{
    static const struct {
        enum format_id kv;
        double most;
    } kinds[] = {{FORMAT_f16, 2e-3}, {FORMAT_q8_0, 5e-2}, {FORMAT_q4_0, 0.5}};
    struct tiny_model o = {.family = "llama", .seed = 10};
    struct model_options exact = options, small = options;
    struct tiny_engine a, b;
    float *x, *y;
    double d;

    exact.kv = format_of(FORMAT_f32);
    small.kv = format_of(kinds[_i].kv);
    a = tiny_load(&o, &exact, 2, NULL);
    b = tiny_load(&o, &small, 2, NULL);
    x = tiny_logits(&a, ids, N, N);
    y = tiny_logits(&b, ids, N, 100);
    d = distance(x, y, N * TINY_N_VOCAB);
    ck_assert_msg(d > 0 && d < kinds[_i].most, "%s is off by %g", small.kv->name, d);
    free(x);
    free(y);
    tiny_close(&a);
    tiny_close(&b);
}
END_TEST

TCase *tcase_model_eval(void)
{
    TCase *tc = tcase_create("eval");

    tcase_add_checked_fixture(tc, set_up, NULL);
    tcase_add_loop_test(tc, a_prompt_in_pieces_has_the_bits_of_the_whole, 0, 6);
    tcase_add_loop_test(tc, threads_do_not_change_a_bit, 0, 6);
    tcase_add_loop_test(tc, logits_move_with_the_input_and_are_finite, 0, 6);
    tcase_add_test(tc, wanted_rows_are_those_of_all_rows_and_none_costs_nothing_of_the_answer);
    tcase_add_test(tc, a_sequence_that_was_cut_back_answers_as_if_it_had_never_gone_on);
    tcase_add_test(tc, cancel_between_layers_leaves_the_sequence_as_it_was);
    tcase_add_test(tc, batches_that_cannot_be_are_refused_and_change_nothing);
    tcase_add_loop_test(tc, smaller_kv_formats_stay_near_the_exact_cache, 0, 3);
    return tc;
}
