/* What stays in a budget: never more than it, always as much as it lets, and dense weights before experts. */
#include <check.h>
#include <stdlib.h>

#include "common/alloc.h"
#include "daemon/memory/placement.h"

TCase *tcase_memory_placement(void);

#define N_LAYERS 12
#define N_DROPS  (N_LAYERS * 3)

static struct placement_drop drops[N_DROPS];
static size_t unit_at[N_LAYERS + 1];

/* Three weights a layer, 8 experts of 10 in each, a table. */
static struct placement_input input(bool experts)
{
    static const size_t sizes[3] = {40, 100, 70};
    size_t order[N_DROPS];
    struct placement_input in = {.keep_bytes = 500,
                                 .rows_bytes = 300,
                                 .rows_staging_bytes = 20,
                                 .drops = drops,
                                 .n_drops = N_DROPS,
                                 .n_layers = N_LAYERS,
                                 .unit_at = unit_at,
                                 .book_bytes = 5};

    for (size_t i = 0; i < N_DROPS; i++)
        drops[i] = (struct placement_drop){.layer = (unsigned)(i / 3),
                                           .home_bytes = sizes[i % 3],
                                           .ring_bytes = sizes[i % 3] + 2,
                                           .bytes = sizes[i % 3]};
    placement_order(drops, N_DROPS, N_LAYERS, order);
    if (experts) {
        for (size_t i = 0; i < N_LAYERS; i++)
            unit_at[i + 1] = unit_at[i] + 10 + i % 2;
        in.n_units = N_LAYERS;
        in.n_experts = 8;
        in.landing_bytes = 22;
    }
    return in;
}

START_TEST(the_largest_of_every_layer_go_first_and_the_layers_that_go_are_spread)
{
    struct placement_input in = input(false);

    for (size_t i = 0; i < N_LAYERS; i++) {
        ck_assert_uint_eq(in.drops[i].bytes, 100);
        ck_assert_uint_eq(in.drops[N_LAYERS + i].bytes, 70);
        ck_assert_uint_eq(in.drops[2 * N_LAYERS + i].bytes, 40);
    }
    ck_assert_uint_ge(abs((int)in.drops[1].layer - (int)in.drops[0].layer), N_LAYERS / 2);
}
END_TEST

START_TEST(every_budget_from_the_floor_on_is_kept_and_more_never_streams_more)
{
    struct placement_input in = input(_i);
    struct placement floor, p, last = {.stream_bytes = SIZE_MAX};

    placement_floor(&in, &floor);
    placement_choose(&in, floor.total_bytes - 1, &p);
    ck_assert_uint_eq(p.total_bytes, floor.total_bytes);
    for (size_t bytes = floor.total_bytes; bytes < 6000; bytes++) {
        placement_choose(&in, bytes, &p);
        ck_assert_uint_le(p.total_bytes, bytes);
        ck_assert_uint_eq(p.total_bytes, p.dense_bytes + p.slots_bytes + p.staging_bytes);
        /* a deeper ring may cost a thirty-second */
        ck_assert_uint_le(p.stream_bytes, last.stream_bytes + last.stream_bytes / 32);
        if (p.n_dropped) {
            ck_assert_uint_ge(p.ring_depth, PLACEMENT_DEPTH_MIN);
            ck_assert_int_eq(p.mode, PLACEMENT_STREAM);
        }
        last = p;
    }
    ck_assert_int_eq(last.mode, PLACEMENT_ALL);
}
END_TEST

START_TEST(tables_go_first_then_experts_and_dense_weights_last)
{
    struct placement_input in = input(true);
    struct placement all, p;

    placement_choose(&in, SIZE_MAX, &all);
    ck_assert_int_eq(all.mode, PLACEMENT_ALL);
    placement_choose(&in, all.total_bytes - 1, &p);
    ck_assert_int_eq(p.mode, PLACEMENT_ROWS);
    placement_choose(&in, all.total_bytes - in.rows_bytes, &p);
    ck_assert_int_eq(p.mode, PLACEMENT_EXPERTS);
    ck_assert_uint_lt(p.n_slots, all.n_slots);
    placement_choose(&in, all.dense_bytes - in.rows_bytes, &p);
    ck_assert_int_eq(p.mode, PLACEMENT_STREAM);
}
END_TEST

START_TEST(a_table_stays_that_takes_next_to_nothing_of_the_slots)
{
    struct placement_input in = input(true);
    struct placement all, p, without;
    bool kept = false, gone = false;
    size_t more;

    in.rows_bytes = 7;
    in.rows_staging_bytes = 2;
    more = in.rows_bytes - in.rows_staging_bytes;
    placement_choose(&in, SIZE_MAX, &all);
    for (size_t bytes = all.total_bytes - 8; bytes > all.total_bytes / 3; bytes--) {
        placement_choose(&in, bytes, &p);
        placement_choose_cut(&in, bytes, false, &without);
        ck_assert(!without.tables);
        ck_assert_uint_le(p.total_bytes, bytes);
        ck_assert_uint_eq(p.total_bytes, p.dense_bytes + p.slots_bytes + p.staging_bytes);
        if (p.tables) {
            ck_assert_int_eq(p.mode, PLACEMENT_EXPERTS);
            ck_assert_uint_ge(p.slots_bytes, 128 * more);
            ck_assert_uint_eq(p.dense_bytes, without.dense_bytes + in.rows_bytes);
            ck_assert_uint_eq(p.staging_bytes, without.staging_bytes - in.rows_staging_bytes);
            ck_assert_uint_le(without.n_slots - p.n_slots, 1);
        } else {
            ck_assert_uint_lt(without.slots_bytes, 128 * more + 12);
        }
        kept |= p.tables;
        gone |= !p.tables;
    }
    ck_assert(kept && gone);
    /* more than its share */
    in = input(true);
    placement_choose(&in, all.total_bytes - 6, &p);
    ck_assert(p.mode == PLACEMENT_EXPERTS && !p.tables);
}
END_TEST

START_TEST(slots_lie_rank_by_rank_and_quotas_differ_by_one_at_most)
{
    struct placement_input in = input(true);

    for (size_t n = 0; n <= in.n_experts * in.n_units; n++) {
        size_t sum = 0, bytes = 0;

        for (size_t u = 0; u < in.n_units; u++) {
            size_t q = placement_quota(&in, n, u);

            ck_assert_uint_le(placement_quota(&in, n, 0) - q, 1);
            sum += q;
            bytes += q * (unit_at[u + 1] - unit_at[u]);
        }
        ck_assert_uint_eq(sum, n);
        ck_assert_uint_eq(bytes, placement_slots_bytes(&in, n));
    }
}
END_TEST

TCase *tcase_memory_placement(void)
{
    TCase *tc = tcase_create("placement");

    tcase_add_test(tc, the_largest_of_every_layer_go_first_and_the_layers_that_go_are_spread);
    tcase_add_loop_test(tc, every_budget_from_the_floor_on_is_kept_and_more_never_streams_more, 0,
                        2);
    tcase_add_test(tc, tables_go_first_then_experts_and_dense_weights_last);
    tcase_add_test(tc, a_table_stays_that_takes_next_to_nothing_of_the_slots);
    tcase_add_test(tc, slots_lie_rank_by_rank_and_quotas_differ_by_one_at_most);
    return tc;
}
