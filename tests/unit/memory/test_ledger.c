/* The book: sums, refusals, budgets. */
#include <check.h>
#include <stdint.h>
#include <string.h>

#include "daemon/memory/ledger.h"

TCase *tcase_memory_ledger(void);

static struct ledger *book(size_t budget)
{
    struct ledger *l = ledger_create();

    ledger_set_capacity(l, POOL_RAM, 1 << 20);
    ck_assert_int_eq(ledger_set_budget(l, POOL_RAM, budget, NULL), 0);
    return l;
}

START_TEST(what_is_reserved_is_counted_by_account_until_it_is_released)
{
    struct ledger *l = book(1000);
    struct ledger_report r;

    ck_assert_int_eq(ledger_reserve(l, POOL_RAM, ACCOUNT_KV, 600, "a", NULL), 0);
    ck_assert_int_eq(ledger_reserve(l, POOL_RAM, ACCOUNT_TEXT, 100, "a", NULL), 0);
    ledger_release(l, POOL_RAM, ACCOUNT_KV, 500);
    ledger_report(l, POOL_RAM, &r);
    ck_assert_uint_eq(r.used, 200);
    ck_assert_uint_eq(r.accounts[ACCOUNT_KV], 100);
    ck_assert_uint_eq(r.accounts[ACCOUNT_TEXT], 100);
    ck_assert_uint_eq(r.peak, 700);
    ck_assert_uint_eq(r.account_peaks[ACCOUNT_KV], 600);
    ck_assert_uint_eq(ledger_free_bytes(l, POOL_RAM), 800);
    ledger_release(l, POOL_RAM, ACCOUNT_KV, 100);
    ledger_release(l, POOL_RAM, ACCOUNT_TEXT, 100);
    ledger_destroy(l);
}
END_TEST

START_TEST(a_lower_capacity_takes_the_budget_down_to_what_is_used)
{
    struct ledger *l = book(1000);

    ck_assert_int_eq(ledger_reserve(l, POOL_RAM, ACCOUNT_KV, 600, "a", NULL), 0);
    ledger_set_capacity(l, POOL_RAM, 800);
    ck_assert_uint_eq(ledger_budget(l, POOL_RAM), 800);
    ledger_set_capacity(l, POOL_RAM, 400);
    ck_assert_uint_eq(ledger_budget(l, POOL_RAM), 600);
    ck_assert_uint_eq(ledger_free_bytes(l, POOL_RAM), 0);
    ck_assert_int_eq(ledger_reserve(l, POOL_RAM, ACCOUNT_KV, 1, "a", NULL), -ERR_NOMEM);
    ledger_release(l, POOL_RAM, ACCOUNT_KV, 100);
    ck_assert_uint_eq(ledger_budget(l, POOL_RAM), 500);
    ck_assert_int_eq(ledger_reserve(l, POOL_RAM, ACCOUNT_KV, 1, "a", NULL), -ERR_NOMEM);
    ledger_release(l, POOL_RAM, ACCOUNT_KV, 500);
    ck_assert_uint_eq(ledger_budget(l, POOL_RAM), 400);
    ck_assert_int_eq(ledger_reserve(l, POOL_RAM, ACCOUNT_KV, 401, "a", NULL), -ERR_NOMEM);
    ck_assert_int_eq(ledger_set_budget(l, POOL_RAM, 401, NULL), -ERR_INVALID);
    ck_assert_int_eq(ledger_set_budget(l, POOL_RAM, 400, NULL), 0);
    ledger_destroy(l);
}
END_TEST

START_TEST(a_refusal_says_who_and_carries_the_sum_and_changes_nothing)
{
    struct ledger *l = book(1000);
    struct err err = {0};
    struct ledger_report r;

    ck_assert_int_eq(ledger_reserve(l, POOL_RAM, ACCOUNT_KV, 600, "a", NULL), 0);
    ck_assert_int_eq(ledger_reserve(l, POOL_RAM, ACCOUNT_WEIGHTS, 401, "model 'x\"y'", &err),
                     -ERR_NOMEM);
    ck_assert_ptr_nonnull(strstr(err.text, "model 'x\"y' needs 401 B for weights"));
    ck_assert_ptr_nonnull(
        strstr(err.data, "\"pool\":\"ram\",\"budget\":1000,\"used\":600,\"free\":400"));
    ck_assert_ptr_nonnull(strstr(err.data, "\"wanted\":401,\"for\":\"model 'xy'\""));
    ck_assert_ptr_nonnull(strstr(err.data, "\"kv\":600"));
    ledger_report(l, POOL_RAM, &r);
    ck_assert_uint_eq(r.used, 600);
    ck_assert_uint_eq(r.refused, 1);
    ck_assert_int_eq(ledger_reserve(l, POOL_RAM, ACCOUNT_WEIGHTS, 400, "a", NULL), 0);
    ck_assert_int_eq(ledger_reserve(l, POOL_RAM, ACCOUNT_WEIGHTS, SIZE_MAX, "a", NULL), -ERR_NOMEM);
    ledger_release(l, POOL_RAM, ACCOUNT_WEIGHTS, 400);
    ledger_release(l, POOL_RAM, ACCOUNT_KV, 600);
    ledger_destroy(l);
}
END_TEST

START_TEST(a_budget_below_use_or_above_the_machine_is_refused_and_changes_nothing)
{
    struct ledger *l = book(1000);
    struct err err = {0};

    ck_assert_int_eq(ledger_reserve(l, POOL_RAM, ACCOUNT_KV, 600, "a", NULL), 0);
    ck_assert_int_eq(ledger_set_budget(l, POOL_RAM, 599, &err), -ERR_CONFLICT);
    ck_assert_ptr_nonnull(strstr(err.text, "600 B in use"));
    ck_assert_int_eq(ledger_set_budget(l, POOL_RAM, (1 << 20) + 1, &err), -ERR_INVALID);
    ck_assert_uint_eq(ledger_budget(l, POOL_RAM), 1000);
    ck_assert_int_eq(ledger_set_budget(l, POOL_RAM, 600, &err), 0);
    ck_assert_int_eq(ledger_reserve(l, POOL_RAM, ACCOUNT_KV, 1, "a", NULL), -ERR_NOMEM);
    ck_assert_int_eq(ledger_set_budget(l, POOL_RAM, 601, &err), 0);
    ck_assert_int_eq(ledger_reserve(l, POOL_RAM, ACCOUNT_KV, 1, "a", NULL), 0);
    ledger_release(l, POOL_RAM, ACCOUNT_KV, 601);
    ledger_destroy(l);
}
END_TEST

START_TEST(after_n_reservations_every_further_one_is_refused_until_it_is_turned_off)
{
    struct ledger *l = book(1000);

    ledger_refuse_after(l, 2);
    ck_assert_int_eq(ledger_reserve(l, POOL_RAM, ACCOUNT_KV, 1, "a", NULL), 0);
    ck_assert_int_eq(ledger_reserve(l, POOL_RAM, ACCOUNT_KV, 1, "a", NULL), 0);
    ck_assert_int_eq(ledger_reserve(l, POOL_RAM, ACCOUNT_KV, 1, "a", NULL), -ERR_NOMEM);
    ck_assert_int_eq(ledger_reserve(l, POOL_RAM, ACCOUNT_KV, 1, "a", NULL), -ERR_NOMEM);
    ledger_refuse_after(l, -1);
    ck_assert_int_eq(ledger_reserve(l, POOL_RAM, ACCOUNT_KV, 1, "a", NULL), 0);
    ledger_release(l, POOL_RAM, ACCOUNT_KV, 3);
    ledger_destroy(l);
}
END_TEST

TCase *tcase_memory_ledger(void)
{
    TCase *tc = tcase_create("ledger");

    tcase_add_test(tc, what_is_reserved_is_counted_by_account_until_it_is_released);
    tcase_add_test(tc, a_lower_capacity_takes_the_budget_down_to_what_is_used);
    tcase_add_test(tc, a_refusal_says_who_and_carries_the_sum_and_changes_nothing);
    tcase_add_test(tc, a_budget_below_use_or_above_the_machine_is_refused_and_changes_nothing);
    tcase_add_test(tc, after_n_reservations_every_further_one_is_refused_until_it_is_turned_off);
    return tc;
}
