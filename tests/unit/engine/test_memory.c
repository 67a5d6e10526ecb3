/* The ledger under the engine: refusals at every place, and a budget that changes while a token is made. */
#include <check.h>
#include <string.h>

#include "common/alloc.h"
#include "tests/unit/engine/rig.h"

TCase *tcase_engine_memory(void);

/*
 * Every reservation of a request is refused once: it fails with one error, and
 * the ledger holds what the model takes, if it came so far, and nothing else.
 */
static void refuse_at_each(struct rig *r,
                           struct request *(*make)(const char *, const char *, int64_t))
{
    bool passed = false;
    long n = 0;

    for (; !passed && n < 64; n++) {
        struct told t = {0};
        struct err err;
        int rc;

        ledger_refuse_after(r->ledger, n);
        rc = rig_submit(r, make("m0", "hello", 3), &t, &err);
        if (rc < 0) {
            ck_assert_int_eq(rc, -ERR_NOMEM);
        } else {
            rig_wait(r, &t);
            passed = t.error.kind == ERR_NONE;
            if (!passed) {
                ck_assert_int_eq(t.error.kind, ERR_NOMEM);
                ck_assert_int_eq(t.kinds[t.n - 1], EVENT_FAILED);
            }
        }
        ledger_refuse_after(r->ledger, -1);
        ck_assert_uint_eq(ledger_used(r->ledger, POOL_RAM), rig_model_bytes(r, "m0"));
        told_clear(&t);
    }
    ck_assert(passed);
    ck_assert_int_gt(n, 2);
}

START_TEST(a_refused_charge_of_a_load_leaves_nothing_behind)
{
    struct rig r;

    rig_open(&r, 1, 0, NULL);
    refuse_at_each(&r, rig_completion);
    rig_close(&r);
}
END_TEST

START_TEST(a_refused_charge_of_a_completion_leaves_nothing_behind)
{
    struct rig r;

    rig_open(&r, 1, 0, NULL);
    rig_load(&r, "m0");
    refuse_at_each(&r, rig_completion);
    rig_close(&r);
}
END_TEST

START_TEST(a_refused_charge_of_a_conversation_leaves_nothing_behind)
{
    struct rig r;

    rig_open(&r, 1, 0, NULL);
    rig_load(&r, "m0");
    refuse_at_each(&r, rig_chat);
    rig_close(&r);
}
END_TEST

static int set_budget(struct rig *r, size_t bytes, enum budget_force force, struct answer *a)
{
    struct job_sink sink = rig_sink(r, a);
    struct err err;
    int64_t id = engine_set_budget(r->e, bytes, force, &sink, &err);

    if (id < 0)
        return (int)err.kind;
    rig_wait_job(r, a);
    return a->failed ? (int)a->error.kind : 0;
}

static void change_budget(struct told *t)
{
    size_t used = ledger_used(t->rig->ledger, POOL_RAM);
    struct answer a;

    ck_assert_int_eq(set_budget(t->rig, used + (1 << 20), BUDGET_KEEP, &a), 0);
    answer_clear(&a);
    ck_assert_uint_eq(ledger_budget(t->rig->ledger, POOL_RAM), used + (1 << 20));
    /* Below what is in use, and what is in use is busy. */
    ck_assert_int_eq(set_budget(t->rig, used / 2, BUDGET_KEEP, &a), ERR_CONFLICT);
    ck_assert_int_eq(set_budget(t->rig, used / 2, BUDGET_IDLE, &a), ERR_CONFLICT);
    ck_assert(!t->ended);
}

START_TEST(the_budget_changes_while_a_token_is_made)
{
    struct rig r;
    struct told t = {.at_text = change_budget};

    rig_open(&r, 1, 0, NULL);
    rig_run(&r, rig_completion("m0", "long", 400), &t);
    ck_assert(t.meddled);
    ck_assert_msg(t.error.kind == ERR_NONE, "%s", t.error.text);
    ck_assert_uint_eq(t.usage.completion_tokens, 400);
    told_clear(&t);
    rig_close(&r);
}
END_TEST

/* Below the floor of what is busy, by what is to go for it. */
static void take_its_memory(struct told *t)
{
    struct answer a;

    ck_assert_int_eq(set_budget(t->rig, 1 << 20, BUDGET_IDLE, &a), ERR_CONFLICT);
    ck_assert(!t->ended);
    ck_assert_int_eq(set_budget(t->rig, 1 << 20, BUDGET_RUNNING, &a), 0);
    ck_assert_int_eq(json_integer_value(json_object_get(a.result, "unloaded")), 2);
    answer_clear(&a);
    ck_assert_uint_eq(ledger_budget(t->rig->ledger, POOL_RAM), 1 << 20);
    ck_assert_uint_le(ledger_used(t->rig->ledger, POOL_RAM), 1 << 20);
}

START_TEST(a_budget_below_the_floor_of_what_runs_ends_it_when_that_is_asked)
{
    struct rig r;
    struct told t = {.at_text = take_its_memory};

    rig_open(&r, 2, 0, NULL);
    rig_load(&r, "m1");
    rig_run(&r, rig_completion("m0", "long", 400), &t);
    ck_assert(t.meddled);
    ck_assert_int_eq(t.error.kind, ERR_CANCELLED);
    ck_assert_ptr_nonnull(strstr(t.error.text, "budget"));
    ck_assert_int_eq(rig_state(&r, "m0"), MODEL_LISTED);
    ck_assert_int_eq(rig_state(&r, "m1"), MODEL_LISTED);
    told_clear(&t);
    rig_close(&r);
}
END_TEST

static void take_memory_of_a_pinned_one(struct told *t)
{
    struct answer a;

    ck_assert_int_eq(set_budget(t->rig, 1 << 20, BUDGET_RUNNING, &a), ERR_CONFLICT);
    ck_assert(!t->ended);
}

START_TEST(nothing_is_ended_for_a_budget_that_a_pinned_model_does_not_leave_room_for)
{
    struct told t = {.at_text = take_memory_of_a_pinned_one};
    struct rig r;

    rig_open(&r, 1, 0, NULL);
    rig_load_pinned(&r, "m0");
    rig_run(&r, rig_completion("m0", "long", 200), &t);
    ck_assert(t.meddled);
    ck_assert_msg(t.error.kind == ERR_NONE, "%s", t.error.text);
    ck_assert_uint_eq(t.usage.completion_tokens, 200);
    told_clear(&t);
    rig_close(&r);
}
END_TEST

START_TEST(a_lower_budget_unloads_idle_models_only_with_force)
{
    struct rig r;
    struct answer a;
    struct told t = {0};
    size_t each;

    rig_open(&r, 2, 0, NULL);
    rig_load(&r, "m0");
    each = rig_model_bytes(&r, "m0");
    rig_load(&r, "m1");
    rig_run(&r, rig_completion("m0", "used later", 2), &t);
    ck_assert_int_eq(set_budget(&r, each * 3 / 2, BUDGET_KEEP, &a), ERR_CONFLICT);
    ck_assert_int_eq(rig_state(&r, "m1"), MODEL_READY);
    ck_assert_int_eq(set_budget(&r, each * 3 / 2, BUDGET_IDLE, &a), 0);
    ck_assert_int_eq(json_integer_value(json_object_get(a.result, "unloaded")), 1);
    answer_clear(&a);
    ck_assert_int_eq(rig_state(&r, "m0"), MODEL_READY);
    ck_assert_int_eq(rig_state(&r, "m1"), MODEL_LISTED);
    told_clear(&t);
    rig_close(&r);
}
END_TEST

START_TEST(force_unloads_nobody_when_it_would_not_be_enough)
{
    struct rig r;
    struct answer a;

    rig_open(&r, 2, 0, NULL);
    rig_load_pinned(&r, "m0");
    rig_load(&r, "m1");
    ck_assert_int_eq(set_budget(&r, 4096, BUDGET_IDLE, &a), ERR_CONFLICT);
    ck_assert_int_eq(rig_state(&r, "m1"), MODEL_READY);
    rig_close(&r);
}
END_TEST

START_TEST(a_context_without_a_number_is_what_the_budget_can_hold)
{
    static char name[] = "free";
    struct engine_model_entry entry = {.name = name, .ttl_ms = -1};
    struct rig r;
    struct model_status st;
    struct told t = {0};
    struct err err;
    size_t each;

    rig_open(&r, 1, 0, NULL);
    rig_load(&r, "m0");
    each = rig_model_bytes(&r, "m0");
    entry.path = r.paths[0];
    ck_assert_int_eq(engine_know(r.e, &entry, &err), 0);
    /* Not enough for both: the idle one leaves, and a request still finds room beside the context. */
    ck_assert_int_eq(ledger_set_budget(r.ledger, POOL_RAM, each * 3 / 2, &err), 0);
    rig_run(&r, rig_completion("free", "hello", 4), &t);
    ck_assert_msg(t.error.kind == ERR_NONE, "%s", t.error.text);
    ck_assert_int_eq(engine_model(r.e, "free", &st, &err), 0);
    ck_assert_uint_gt(st.n_ctx, 0);
    ck_assert_uint_le(st.n_ctx, st.n_ctx_train);
    ck_assert_int_eq(rig_state(&r, "m0"), MODEL_LISTED);
    told_clear(&t);
    rig_close(&r);
}
END_TEST

START_TEST(an_idle_model_leaves_for_a_request_of_another)
{
    struct rig r;
    struct told t = {0};
    struct err err;

    rig_open(&r, 2, 0, NULL);
    rig_load(&r, "m0");
    rig_load(&r, "m1");
    /* The two fit; what the request itself takes does not beside them. */
    ck_assert_int_eq(
        ledger_set_budget(r.ledger, POOL_RAM, ledger_used(r.ledger, POOL_RAM) + 2000, &err), 0);
    rig_run(&r, rig_completion("m0", "hello", 3), &t);
    ck_assert_msg(t.error.kind == ERR_NONE, "%s", t.error.text);
    ck_assert_int_eq(rig_state(&r, "m1"), MODEL_LISTED);
    told_clear(&t);
    rig_close(&r);
}
END_TEST

TCase *tcase_engine_memory(void)
{
    TCase *tc = tcase_create("memory");

    tcase_add_test(tc, a_refused_charge_of_a_load_leaves_nothing_behind);
    tcase_add_test(tc, a_refused_charge_of_a_completion_leaves_nothing_behind);
    tcase_add_test(tc, a_refused_charge_of_a_conversation_leaves_nothing_behind);
    tcase_add_test(tc, the_budget_changes_while_a_token_is_made);
    tcase_add_test(tc, a_budget_below_the_floor_of_what_runs_ends_it_when_that_is_asked);
    tcase_add_test(tc, nothing_is_ended_for_a_budget_that_a_pinned_model_does_not_leave_room_for);
    tcase_add_test(tc, a_lower_budget_unloads_idle_models_only_with_force);
    tcase_add_test(tc, force_unloads_nobody_when_it_would_not_be_enough);
    tcase_add_test(tc, an_idle_model_leaves_for_a_request_of_another);
    tcase_add_test(tc, a_context_without_a_number_is_what_the_budget_can_hold);
    return tc;
}
