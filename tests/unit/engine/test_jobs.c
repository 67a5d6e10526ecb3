/* Load, plan, show and bench as answers to a caller. */
#include <check.h>
#include <string.h>

#include "common/alloc.h"
#include "tests/unit/engine/rig.h"

TCase *tcase_engine_jobs(void);

static json_int_t number(const struct answer *a, const char *key)
{
    const json_t *v = json_object_get(a->result, key);

    ck_assert_msg(json_is_number(v), "%s", key);
    return (json_int_t)json_number_value(v);
}

static const char *text(const struct answer *a, const char *key)
{
    const char *s = json_string_value(json_object_get(a->result, key));

    ck_assert_msg(s != NULL, "%s", key);
    return s;
}

static void done(struct rig *r, int64_t id, struct answer *a)
{
    ck_assert_int_gt(id, 0);
    rig_wait_job(r, a);
    ck_assert_msg(!a->failed, "%s", a->error.text);
}

START_TEST(a_load_shows_progress_and_what_became_of_it)
{
    struct load_spec spec = {
        .target = "m0", .n_ctx = 128, .kv = "q8_0", .ttl_ms = 3600000, .pin = -1};
    struct rig r;
    struct answer a;
    struct job_sink sink;
    struct model_status st;
    struct err err;

    rig_open(&r, 1, 0, NULL);
    sink = rig_sink(&r, &a);
    done(&r, engine_load(r.e, &spec, &sink, &err), &a);
    ck_assert_uint_gt(a.n_progress, 0);
    ck_assert_int_eq(number(&a, "n_ctx"), 128);
    ck_assert_str_eq(text(&a, "model"), "m0");
    ck_assert_int_eq(engine_model(r.e, "m0", &st, &err), 0);
    ck_assert_int_eq(st.state, MODEL_READY);
    ck_assert_str_eq(st.kv, "q8_0");
    ck_assert(st.until_ms > 0 && st.until_ms <= 3600000);
    ck_assert_uint_eq(st.resident_bytes, st.total_bytes);
    answer_clear(&a);
    rig_close(&r);
}
END_TEST

START_TEST(a_loaded_model_is_not_loaded_otherwise_in_silence)
{
    struct load_spec spec = {.target = "m0", .n_ctx = 128, .ttl_ms = -1, .pin = -1};
    struct rig r;
    struct answer a;
    struct job_sink sink;
    struct err err;

    rig_open(&r, 1, 0, NULL);
    rig_load(&r, "m0");
    sink = rig_sink(&r, &a);
    ck_assert_int_gt(engine_load(r.e, &spec, &sink, &err), 0);
    rig_wait_job(&r, &a);
    ck_assert_int_eq(a.error.kind, ERR_CONFLICT);
    ck_assert_str_eq(a.error.param, "ctx");
    rig_close(&r);
}
END_TEST

START_TEST(a_path_becomes_a_model_of_its_own_name)
{
    struct load_spec spec = {.name = "mine", .ttl_ms = -1, .pin = -1};
    struct rig r;
    struct answer a;
    struct job_sink sink;
    struct err err;

    rig_open(&r, 1, 0, NULL);
    spec.target = r.paths[0];
    sink = rig_sink(&r, &a);
    done(&r, engine_load(r.e, &spec, &sink, &err), &a);
    answer_clear(&a);
    ck_assert_int_eq(rig_state(&r, "mine"), MODEL_READY);
    ck_assert_uint_eq(engine_models(r.e, NULL, 0), 2);
    spec.target = "nothing-of-that-name";
    ck_assert_int_eq((int)engine_load(r.e, &spec, &sink, &err), -ERR_NOT_FOUND);
    spec.target = "m0";
    spec.kv = "q3";
    ck_assert_int_eq((int)engine_load(r.e, &spec, &sink, &err), -ERR_INVALID);
    rig_close(&r);
}
END_TEST

START_TEST(a_path_that_cannot_be_loaded_does_not_become_known)
{
    struct load_spec spec = {.target = "/nowhere/at-all.gguf", .ttl_ms = -1, .pin = -1};
    struct rig r;
    struct answer a;
    struct job_sink sink;
    struct err err;

    rig_open(&r, 1, 0, NULL);
    sink = rig_sink(&r, &a);
    ck_assert_int_gt(engine_load(r.e, &spec, &sink, &err), 0);
    rig_wait_job(&r, &a);
    ck_assert(a.failed);
    ck_assert_uint_eq(engine_models(r.e, NULL, 0), 1);
    /* The same file without a name of its own is the model that is known already. */
    spec.target = r.paths[0];
    sink = rig_sink(&r, &a);
    done(&r, engine_load(r.e, &spec, &sink, &err), &a);
    ck_assert_str_eq(text(&a, "model"), "m0");
    answer_clear(&a);
    rig_close(&r);
}
END_TEST

START_TEST(a_plan_tells_the_sum_and_whether_it_fits)
{
    struct rig r;
    struct answer a;
    struct job_sink sink;
    struct err err;
    json_int_t total;

    rig_open(&r, 1, 0, NULL);
    sink = rig_sink(&r, &a);
    done(&r, engine_plan(r.e, "m0", 0, NULL, 0, &sink, &err), &a);
    ck_assert(json_is_true(json_object_get(a.result, "fits")));
    ck_assert_int_eq(number(&a, "n_ctx"), 512);
    total = number(&a, "total");
    answer_clear(&a);
    sink = rig_sink(&r, &a);
    done(&r, engine_plan(r.e, r.paths[0], 0, NULL, (size_t)total / 2, &sink, &err), &a);
    ck_assert(json_is_false(json_object_get(a.result, "fits")));
    ck_assert_uint_gt(strlen(text(&a, "advice")), 10);
    answer_clear(&a);
    ck_assert_uint_eq(ledger_used(r.ledger, POOL_RAM), 0);
    rig_load(&r, "m0");
    ck_assert_int_eq((json_int_t)ledger_used(r.ledger, POOL_RAM), total);
    rig_close(&r);
}
END_TEST

START_TEST(show_lists_metadata_and_tensors)
{
    struct rig r;
    struct answer a;
    struct job_sink sink;
    struct err err;

    rig_open(&r, 1, 0, NULL);
    sink = rig_sink(&r, &a);
    done(&r, engine_show(r.e, "first", &sink, &err), &a);
    ck_assert_str_eq(text(&a, "arch"), "llama");
    ck_assert_uint_gt(json_array_size(json_object_get(a.result, "tensors")), 10);
    ck_assert_ptr_nonnull(
        json_object_get(json_object_get(a.result, "metadata"), "general.architecture"));
    ck_assert_ptr_nonnull(strstr(text(&a, "chat_template"), "message"));
    ck_assert_uint_eq(json_array_size(json_object_get(a.result, "suspicious")), 0);
    ck_assert_uint_eq(json_array_size(json_object_get(a.result, "layers")), 1);
    ck_assert_str_eq(json_string_value(json_object_get(
                         json_array_get(json_object_get(a.result, "layers"), 0), "kind")),
                     "attention, dense");
    answer_clear(&a);
    sink = rig_sink(&r, &a);
    ck_assert_int_gt(engine_show(r.e, "/nowhere/x.gguf", &sink, &err), 0);
    rig_wait_job(&r, &a);
    ck_assert(a.failed);
    ck_assert_ptr_nonnull(strstr(a.error.text, "/nowhere/x.gguf"));
    rig_close(&r);
}
END_TEST

static void expect_test(const struct answer *a, size_t i, const char *test, int n, int depth)
{
    const json_t *t = json_array_get(json_object_get(a->result, "tests"), i);

    ck_assert_str_eq(json_string_value(json_object_get(t, "test")), test);
    ck_assert_int_eq(json_integer_value(json_object_get(t, "n")), n);
    ck_assert_int_eq(json_integer_value(json_object_get(t, "depth")), depth);
    ck_assert_uint_eq(json_array_size(json_object_get(t, "rates")), 2);
    ck_assert(json_real_value(json_object_get(t, "least")) > 0);
    ck_assert(json_real_value(json_object_get(t, "least")) <=
              json_real_value(json_object_get(t, "median")));
    ck_assert(json_real_value(json_object_get(t, "median")) <=
              json_real_value(json_object_get(t, "most")));
}

START_TEST(a_bench_measures_both_phases_at_each_depth)
{
    struct bench_spec spec = {32, 8, {16, 0}, 2, 2};
    struct rig r;
    struct answer a;
    struct job_sink sink;
    struct err err;

    rig_open(&r, 1, 0, NULL);
    sink = rig_sink(&r, &a);
    done(&r, engine_bench(r.e, "m0", &spec, &sink, &err), &a);
    ck_assert_uint_eq(json_array_size(json_object_get(a.result, "tests")), 4);
    expect_test(&a, 0, "pp", 32, 16);
    expect_test(&a, 1, "tg", 8, 16);
    expect_test(&a, 2, "pp", 32, 0);
    expect_test(&a, 3, "tg", 8, 0);
    answer_clear(&a);
    rig_close(&r);
}
END_TEST

START_TEST(a_bench_that_cannot_be_is_refused)
{
    struct bench_spec long_one = {500, 8, {16}, 1, 1}, nothing = {0, 0, {0}, 1, 1};
    struct bench_spec no_depth = {32, 8, {0}, 0, 1}, never = {32, 8, {0}, 1, 0};
    struct rig r;
    struct answer a;
    struct job_sink sink;
    struct err err;

    rig_open(&r, 1, 0, NULL);
    sink = rig_sink(&r, &a);
    ck_assert_int_gt(engine_bench(r.e, "m0", &long_one, &sink, &err), 0);
    rig_wait_job(&r, &a);
    ck_assert_int_eq(a.error.kind, ERR_TOO_LARGE);
    ck_assert_int_eq((int)engine_bench(r.e, "m0", &nothing, &sink, &err), -ERR_INVALID);
    ck_assert_int_eq((int)engine_bench(r.e, "m0", &no_depth, &sink, &err), -ERR_INVALID);
    ck_assert_int_eq((int)engine_bench(r.e, "m0", &never, &sink, &err), -ERR_INVALID);
    rig_close(&r);
}
END_TEST

START_TEST(an_abandoned_job_calls_nobody)
{
    struct bench_spec endless = {400, 100, {0}, 1, 100}, short_one = {8, 0, {0}, 1, 1};
    struct rig r;
    struct answer a, b;
    struct job_sink sink;
    struct err err;
    int64_t id;

    rig_open(&r, 1, 0, NULL);
    sink = rig_sink(&r, &a);
    id = engine_bench(r.e, "m0", &endless, &sink, &err);
    ck_assert_int_gt(id, 0);
    engine_job_abandon(r.e, id);
    sink = rig_sink(&r, &b);
    /* Queued behind it: it can only end when the other one has. */
    done(&r, engine_bench(r.e, "m0", &short_one, &sink, &err), &b);
    answer_clear(&b);
    ck_assert(!a.ended);
    ck_assert(engine_idle(r.e));
    rig_close(&r);
}
END_TEST

START_TEST(the_heart_beats_while_it_works_and_while_it_waits)
{
    struct rig r;
    struct told t = {0};
    int64_t before, after;

    rig_open(&r, 1, 0, NULL);
    before = engine_heartbeat_ms(r.e);
    rig_run(&r, rig_completion("m0", "x", 50), &t);
    after = engine_heartbeat_ms(r.e);
    ck_assert_int_ge(after, before);
    told_clear(&t);
    rig_close(&r);
}
END_TEST

TCase *tcase_engine_jobs(void)
{
    TCase *tc = tcase_create("jobs");

    tcase_add_test(tc, a_load_shows_progress_and_what_became_of_it);
    tcase_add_test(tc, a_loaded_model_is_not_loaded_otherwise_in_silence);
    tcase_add_test(tc, a_path_becomes_a_model_of_its_own_name);
    tcase_add_test(tc, a_path_that_cannot_be_loaded_does_not_become_known);
    tcase_add_test(tc, a_plan_tells_the_sum_and_whether_it_fits);
    tcase_add_test(tc, show_lists_metadata_and_tensors);
    tcase_add_test(tc, a_bench_measures_both_phases_at_each_depth);
    tcase_add_test(tc, a_bench_that_cannot_be_is_refused);
    tcase_add_test(tc, an_abandoned_job_calls_nobody);
    tcase_add_test(tc, the_heart_beats_while_it_works_and_while_it_waits);
    return tc;
}
