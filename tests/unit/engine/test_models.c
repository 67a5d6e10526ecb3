/* Models that come and go: names, loads, unloads, time to live, swaps. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/alloc.h"
#include "tests/support/tiny_model.h"
#include "tests/unit/engine/rig.h"

TCase *tcase_engine_models(void);

START_TEST(a_request_loads_the_model_it_names_by_name_or_alias)
{
    struct rig r;
    struct told t = {0};

    rig_open(&r, 2, 0, NULL);
    ck_assert_int_eq(rig_state(&r, "m0"), MODEL_LISTED);
    rig_run(&r, rig_completion("first", "x", 2), &t);
    ck_assert_str_eq(t.model, "m0");
    ck_assert_int_eq(rig_state(&r, "first"), MODEL_READY);
    ck_assert_int_eq(rig_state(&r, "m1"), MODEL_LISTED);
    told_clear(&t);
    rig_close(&r);
}
END_TEST

START_TEST(a_request_without_a_name_takes_the_only_one_in_memory)
{
    struct rig r;
    struct told t = {0};

    rig_open(&r, 2, 0, NULL);
    rig_load(&r, "m1");
    rig_run(&r, rig_completion(NULL, "x", 2), &t);
    ck_assert_str_eq(t.model, "m1");
    told_clear(&t);
    rig_close(&r);
}
END_TEST

START_TEST(an_unknown_name_is_refused_with_the_known_ones)
{
    struct rig r;
    struct told t = {0};
    struct err err;

    rig_open(&r, 2, 0, NULL);
    ck_assert_int_eq(rig_submit(&r, rig_completion("nobody", "x", 2), &t, &err), -ERR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(err.text, "'m0', 'm1'"));
    ck_assert_str_eq(err.param, "model");
    rig_close(&r);
}
END_TEST

START_TEST(names_belong_to_one_model)
{
    static char first[] = "first", other[] = "other";
    static char *aliases[] = {first};
    struct engine_model_entry entry = {.name = other, .ttl_ms = -1};
    struct rig r;
    struct err err;

    rig_open(&r, 2, 0, NULL);
    entry.path = r.paths[1];
    entry.aliases = aliases;
    entry.n_aliases = 1;
    ck_assert_int_eq(engine_know(r.e, &entry, &err), -ERR_CONFLICT);
    entry.n_aliases = 0;
    entry.name = first;
    ck_assert_int_eq(engine_know(r.e, &entry, &err), -ERR_CONFLICT);
    ck_assert_uint_eq(engine_models(r.e, NULL, 0), 2);
    rig_close(&r);
}
END_TEST

static bool keep_m1(void *arg, const char *name)
{
    (void)arg;
    return strcmp(name, "m1") == 0;
}

START_TEST(a_forgotten_model_leaves_when_it_is_idle)
{
    struct rig r;
    struct told t = {0};
    struct model_status st;
    struct err err;

    rig_open(&r, 2, 0, NULL);
    rig_load(&r, "m0");
    engine_forget(r.e, keep_m1, NULL);
    ck_assert_int_eq(engine_model(r.e, "m0", &st, &err), -ERR_NOT_FOUND);
    ck_assert_uint_eq(engine_models(r.e, &st, 1), 1);
    ck_assert_str_eq(st.name, "m1");
    /* Whatever comes next finds only its own bytes in the ledger. */
    rig_run(&r, rig_completion("m1", "x", 2), &t);
    ck_assert_uint_eq(ledger_used(r.ledger, POOL_RAM), rig_model_bytes(&r, "m1"));
    told_clear(&t);
    rig_close(&r);
}
END_TEST

START_TEST(a_name_can_be_given_to_another_file)
{
    static char m0[] = "m0";
    struct engine_model_entry entry = {.name = m0, .ttl_ms = -1, .n_ctx = 512};
    struct rig r;
    struct told a = {0}, b = {0};
    struct model_status st;
    struct err err;

    rig_open(&r, 2, 0, NULL);
    rig_run(&r, rig_completion("m0", "who", 12), &a);
    entry.path = r.paths[1];
    ck_assert_int_eq(engine_know(r.e, &entry, &err), 0);
    rig_run(&r, rig_completion("m0", "who", 12), &b);
    ck_assert_int_eq(engine_model(r.e, "m0", &st, &err), 0);
    ck_assert_str_eq(st.arch, "qwen3");
    ck_assert_str_ne(str_text(&a.text[0]), str_text(&b.text[0]));
    told_clear(&a);
    told_clear(&b);
    rig_close(&r);
}
END_TEST

static int unload(struct rig *r, const char *name, bool force, struct answer *a)
{
    struct job_sink sink = rig_sink(r, a);
    struct err err;

    ck_assert_msg(engine_unload(r->e, name, force, &sink, &err) > 0, "%s", err.text);
    rig_wait_job(r, a);
    return a->failed ? (int)a->error.kind : 0;
}

START_TEST(an_idle_model_is_unloaded_and_gives_every_byte_back)
{
    struct rig r;
    struct answer a;

    rig_open(&r, 1, 0, NULL);
    rig_load(&r, "m0");
    ck_assert_uint_gt(ledger_used(r.ledger, POOL_RAM), 100000);
    ck_assert_uint_eq(ledger_used(r.ledger, POOL_RAM), rig_model_bytes(&r, "m0"));
    ck_assert_int_eq(unload(&r, "m0", false, &a), 0);
    ck_assert_str_eq(json_string_value(json_object_get(a.result, "model")), "m0");
    answer_clear(&a);
    ck_assert_int_eq(rig_state(&r, "m0"), MODEL_LISTED);
    ck_assert_uint_eq(ledger_used(r.ledger, POOL_RAM), 0);
    ck_assert_int_eq(unload(&r, "m0", false, &a), ERR_CONFLICT);
    rig_close(&r);
}
END_TEST

static void unload_gently(struct told *t)
{
    struct answer a;

    /* While it generates: refused, and the answer goes on. */
    ck_assert_int_eq(unload(t->rig, "m0", false, &a), ERR_CONFLICT);
}

START_TEST(a_busy_model_is_not_unloaded)
{
    struct rig r;
    struct told t = {.at_text = unload_gently};

    rig_open(&r, 1, 0, NULL);
    rig_run(&r, rig_completion("m0", "long", 300), &t);
    ck_assert_int_eq(t.error.kind, ERR_NONE);
    ck_assert_int_eq(rig_state(&r, "m0"), MODEL_READY);
    told_clear(&t);
    rig_close(&r);
}
END_TEST

START_TEST(force_ends_the_requests_of_a_busy_model_and_unloads_it)
{
    struct rig r;
    struct told a = {0}, b = {0};
    struct answer u;
    struct err err;

    rig_open(&r, 1, 0, NULL);
    rig_hold(&r);
    ck_assert_int_eq(rig_submit(&r, rig_completion("m0", "long", -1), &a, &err), 0);
    ck_assert_int_eq(rig_submit(&r, rig_completion("m0", "next", -1), &b, &err), 0);
    rig_wait_state(&r, "m0", MODEL_READY);
    ck_assert_int_eq(unload(&r, "m0", true, &u), 0);
    answer_clear(&u);
    rig_wait(&r, &a);
    rig_wait(&r, &b);
    ck_assert_int_eq(a.error.kind, ERR_CANCELLED);
    ck_assert_int_eq(b.error.kind, ERR_CANCELLED);
    ck_assert_ptr_nonnull(strstr(a.error.text, "unloaded"));
    ck_assert_int_eq(rig_state(&r, "m0"), MODEL_LISTED);
    told_clear(&a);
    told_clear(&b);
    rig_close(&r);
}
END_TEST

START_TEST(an_idle_model_leaves_when_its_time_has_passed)
{
    struct engine_options o = {.queue_max = 2, .ttl_ms = 20};
    struct rig r;
    struct told t = {0};

    rig_open(&r, 1, 0, &o);
    rig_run(&r, rig_completion("m0", "x", 2), &t);
    rig_wait_state(&r, "m0", MODEL_LISTED);
    ck_assert_uint_eq(ledger_used(r.ledger, POOL_RAM), 0);
    told_clear(&t);
    rig_close(&r);
}
END_TEST

/* The configuration now says that m1 leaves after a millisecond. */
static void shorten_the_other(struct told *t)
{
    static char m1[] = "m1";
    struct engine_model_entry entry = {.name = m1, .path = t->rig->paths[1], .ttl_ms = 1};
    struct err err;

    ck_assert_int_eq(rig_state(t->rig, "m1"), MODEL_READY);
    ck_assert_int_eq(engine_know(t->rig->e, &entry, &err), 0);
    rig_wait_state(t->rig, "m1", MODEL_LISTED);
    ck_assert(!t->ended);
}

START_TEST(an_idle_model_leaves_also_while_another_works)
{
    struct rig r;
    struct told t = {.at_text = shorten_the_other};

    rig_open(&r, 2, 0, NULL);
    rig_load(&r, "m1");
    rig_run(&r, rig_completion("m0", "long", 400), &t);
    ck_assert_msg(t.error.kind == ERR_NONE, "%s", t.error.text);
    ck_assert(t.meddled);
    told_clear(&t);
    rig_close(&r);
}
END_TEST

START_TEST(keep_alive_of_a_request_overrides_the_time_to_live)
{
    struct engine_options o = {.queue_max = 2, .ttl_ms = 0};
    struct rig r;
    struct told t = {0};
    struct request *q = rig_completion("m0", "x", 2);

    rig_open(&r, 1, 0, &o);
    q->keep_alive_ms = 0;
    rig_run(&r, q, &t);
    rig_wait_state(&r, "m0", MODEL_LISTED);
    told_clear(&t);
    rig_close(&r);
}
END_TEST

START_TEST(the_model_used_least_recently_leaves_when_another_needs_its_bytes)
{
    struct rig r;
    struct told t = {0};
    size_t each;
    struct err err;

    rig_open(&r, 3, 0, NULL);
    rig_load(&r, "m0");
    each = rig_model_bytes(&r, "m0");
    rig_load(&r, "m1");
    rig_run(&r, rig_completion("m0", "again", 2), &t);
    told_clear(&t);
    /* What is over two is for requests, and less than the weights of a third. */
    ck_assert_int_eq(ledger_set_budget(r.ledger, POOL_RAM, each * 2 + (1 << 20), &err), 0);
    rig_run(&r, rig_completion("m2", "new", 2), &t);
    ck_assert_msg(t.error.kind == ERR_NONE, "%s", t.error.text);
    ck_assert_int_eq(rig_state(&r, "m0"), MODEL_READY);
    ck_assert_int_eq(rig_state(&r, "m1"), MODEL_LISTED);
    ck_assert_int_eq(rig_state(&r, "m2"), MODEL_READY);
    told_clear(&t);
    rig_close(&r);
}
END_TEST

START_TEST(a_pinned_model_does_not_make_room_and_the_refusal_has_the_sum)
{
    struct rig r;
    struct told t = {0};
    struct err err;
    size_t each;

    rig_open(&r, 2, 0, NULL);
    rig_load_pinned(&r, "m0");
    each = rig_model_bytes(&r, "m0");
    ck_assert_int_eq(ledger_set_budget(r.ledger, POOL_RAM, each * 3 / 2, &err), 0);
    rig_run(&r, rig_completion("m1", "x", 2), &t);
    ck_assert_int_eq(t.error.kind, ERR_NOMEM);
    ck_assert_ptr_nonnull(strstr(t.error.data, "\"accounts\""));
    ck_assert_int_eq(rig_state(&r, "m1"), MODEL_FAILED);
    ck_assert_int_eq(rig_state(&r, "m0"), MODEL_READY);
    told_clear(&t);
    rig_close(&r);
}
END_TEST

START_TEST(nobody_leaves_in_vain)
{
    struct rig r;
    struct told t = {0};
    struct err err;
    size_t each;

    rig_open(&r, 2, 0, NULL);
    rig_load(&r, "m0");
    each = rig_model_bytes(&r, "m0");
    rig_load(&r, "m1");
    ck_assert_int_eq(ledger_set_budget(r.ledger, POOL_RAM, each * 2 + (1 << 20), &err), 0);
    {
        /* Larger than all of the budget. */
        struct tiny_model big = {.family = "llama", .n_layers = 12, .n_ctx = 4096};
        static char name[] = "big";
        int fd = tiny_model_memfd(&big);
        char *path = gguf_writer_fd_path(fd);
        struct engine_model_entry entry = {.name = name, .path = path, .n_ctx = 4096, .ttl_ms = -1};

        ck_assert_int_eq(engine_know(r.e, &entry, &err), 0);
        rig_run(&r, rig_completion("big", "x", 2), &t);
        close(fd);
        free(path);
    }
    ck_assert_int_eq(t.error.kind, ERR_NOMEM);
    ck_assert_int_eq(rig_state(&r, "m0"), MODEL_READY);
    ck_assert_int_eq(rig_state(&r, "m1"), MODEL_READY);
    told_clear(&t);
    rig_close(&r);
}
END_TEST

START_TEST(a_file_that_has_vanished_fails_and_is_tried_again)
{
    static char name[] = "gone";
    struct tiny_model m = {.family = "llama", .n_ctx = 512};
    struct engine_model_entry entry = {.name = name, .ttl_ms = -1};
    char path[] = P_tmpdir "/rnbd-test-XXXXXX";
    struct rig r;
    struct told t = {0};
    struct model_status st;
    struct err err;

    rig_open(&r, 0, 0, NULL);
    ck_assert_ptr_nonnull(mkdtemp(path));
    entry.path = xasprintf("%s/m.gguf", path);
    ck_assert_int_eq(engine_know(r.e, &entry, &err), 0);
    rig_run(&r, rig_completion("gone", "x", 2), &t);
    ck_assert_int_ne(t.error.kind, ERR_NONE);
    ck_assert_int_eq(engine_model(r.e, "gone", &st, &err), 0);
    ck_assert_int_eq(st.state, MODEL_FAILED);
    ck_assert_ptr_nonnull(strstr(st.error, "m.gguf"));
    tiny_model_save(&m, entry.path);
    rig_run(&r, rig_completion("gone", "x", 2), &t);
    ck_assert_int_eq(t.error.kind, ERR_NONE);
    told_clear(&t);
    rig_close(&r);
    unlink(entry.path);
    rmdir(path);
    free(entry.path);
}
END_TEST

START_TEST(a_file_that_was_cut_short_fails_with_a_sentence)
{
    struct rig r;
    struct told t = {0};

    rig_open(&r, 1, 0, NULL);
    ck_assert_int_eq(ftruncate(r.fds[0], 200000), 0);
    rig_run(&r, rig_completion("m0", "x", 2), &t);
    ck_assert_int_eq(t.error.kind, ERR_FORMAT);
    ck_assert_uint_gt(strlen(t.error.text), 20);
    ck_assert_int_eq(rig_state(&r, "m0"), MODEL_FAILED);
    told_clear(&t);
    rig_close(&r);
}
END_TEST

START_TEST(requests_of_two_models_that_do_not_fit_together_all_end_well)
{
    struct engine_options o = {.queue_max = 16};
    struct engine_stats stats;
    struct rig r;
    struct told t[8] = {0};
    struct err err;
    size_t each;

    rig_open(&r, 2, 0, &o);
    rig_load(&r, "m0");
    each = rig_model_bytes(&r, "m0");
    ck_assert_int_eq(ledger_set_budget(r.ledger, POOL_RAM, each + (1 << 20), &err), 0);
    rig_hold(&r); /* until all of them wait */
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(rig_submit(&r, rig_completion(i % 2 ? "m1" : "m0", "x", 2), &t[i], &err),
                         0);
    rig_release(&r);
    for (int i = 0; i < 8; i++) {
        rig_wait(&r, &t[i]);
        ck_assert_msg(t[i].error.kind == ERR_NONE, "%s", t[i].error.text);
        told_clear(&t[i]);
    }
    engine_stats(r.e, &stats);
    /* In turns by batches: one swap, not seven. */
    ck_assert_uint_eq(stats.loads, 2);
    ck_assert_uint_eq(stats.unloads, 1);
    rig_close(&r);
}
END_TEST

TCase *tcase_engine_models(void)
{
    TCase *tc = tcase_create("models");

    tcase_add_test(tc, a_request_loads_the_model_it_names_by_name_or_alias);
    tcase_add_test(tc, a_request_without_a_name_takes_the_only_one_in_memory);
    tcase_add_test(tc, an_unknown_name_is_refused_with_the_known_ones);
    tcase_add_test(tc, names_belong_to_one_model);
    tcase_add_test(tc, a_forgotten_model_leaves_when_it_is_idle);
    tcase_add_test(tc, a_name_can_be_given_to_another_file);
    tcase_add_test(tc, an_idle_model_is_unloaded_and_gives_every_byte_back);
    tcase_add_test(tc, a_busy_model_is_not_unloaded);
    tcase_add_test(tc, force_ends_the_requests_of_a_busy_model_and_unloads_it);
    tcase_add_test(tc, an_idle_model_leaves_when_its_time_has_passed);
    tcase_add_test(tc, an_idle_model_leaves_also_while_another_works);
    tcase_add_test(tc, keep_alive_of_a_request_overrides_the_time_to_live);
    tcase_add_test(tc, the_model_used_least_recently_leaves_when_another_needs_its_bytes);
    tcase_add_test(tc, a_pinned_model_does_not_make_room_and_the_refusal_has_the_sum);
    tcase_add_test(tc, nobody_leaves_in_vain);
    tcase_add_test(tc, a_file_that_has_vanished_fails_and_is_tried_again);
    tcase_add_test(tc, a_file_that_was_cut_short_fails_with_a_sentence);
    tcase_add_test(tc, requests_of_two_models_that_do_not_fit_together_all_end_well);
    return tc;
}
