/* KV caches and recurrent states: shapes, charges, prefixes, checkpoints. */
#include <check.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "daemon/sequence/sequence.h"
#include "tests/support/cpu_backend.h"

TCase *tcase_sequence_sequence(void);

static struct cpu_backend cpu;
static struct ledger *ledger;

static void set_up(void)
{
    cpu = cpu_backend_open(1, NULL);
    ledger = ledger_create();
}

static void tear_down(void)
{
    cpu_backend_close(&cpu);
    ledger_destroy(ledger);
}

static const struct sequence_layer layers[3] = {
    {.n_kv_heads = 2, .k_dim = 64, .v_dim = 64}, {0}, {.n_kv_heads = 4, .k_dim = 32, .v_dim = 96}};

static struct sequence_layout layout(size_t n_ctx)
{
    return (struct sequence_layout){.layers = layers,
                                    .n_layers = 3,
                                    .k_fmt = format_of(FORMAT_f16),
                                    .v_fmt = format_of(FORMAT_q8_0),
                                    .n_ctx = n_ctx};
}

static struct sequence *make(size_t n_ctx)
{
    struct sequence_layout l = layout(n_ctx);
    struct sequence *s = NULL;
    struct err err = {0};

    ck_assert_msg(sequence_create(&l, ledger, cpu.ops, cpu.be, "test", &s, &err) == 0, "%s",
                  err.text);
    return s;
}

START_TEST(caches_have_a_chunk_of_positions_for_each_head_and_do_not_overlap)
{
    struct sequence *s = make(600);
    struct tensor k = sequence_k(s, 2), v = sequence_v(s, 2);

    ck_assert_uint_eq(k.n[0], 32);
    ck_assert_uint_eq(k.n[1], OP_KV_CHUNK);
    ck_assert_uint_eq(k.n[2], 4);
    ck_assert_uint_eq(k.n[3], 3); /* 600 positions in chunks of 256 */
    ck_assert_uint_eq(v.n[0], 96);
    ck_assert_ptr_eq(v.fmt, format_of(FORMAT_q8_0));
    ck_assert_ptr_null(sequence_k(s, 1).fmt);
    ck_assert((char *)k.data + tensor_bytes(&k) <= (char *)v.data);
    for (size_t i = 0; i < 3; i += 2) { /* all of it can be written */
        struct tensor t[2] = {sequence_k(s, i), sequence_v(s, i)};

        for (int j = 0; j < 2; j++) {
            ck_assert_uint_eq((uintptr_t)t[j].data % 64, 0);
            memset(t[j].data, 0xFF, tensor_bytes(&t[j]));
        }
    }
    sequence_destroy(s);
}
END_TEST

START_TEST(values_that_are_a_part_of_the_keys_are_kept_once)
{
    struct sequence_layer latent = {.n_kv_heads = 1, .k_dim = 96, .v_dim = 64, .v_in_k = true};
    struct sequence_layout l = layout(300);
    struct sequence *s = NULL;
    struct err err = {0};
    struct tensor k, v;

    l.layers = &latent;
    l.n_layers = 1;
    ck_assert_int_eq(sequence_create(&l, ledger, cpu.ops, cpu.be, "test", &s, &err), 0);
    k = sequence_k(s, 0);
    v = sequence_v(s, 0);
    ck_assert_ptr_eq(v.data, k.data);
    ck_assert_ptr_eq(v.fmt, k.fmt);
    ck_assert_uint_eq(v.n[0], 64);
    ck_assert_uint_eq(v.stride[1], k.stride[1]);
    ck_assert_uint_ge(sequence_bytes(&l, cpu.ops, cpu.be), tensor_bytes(&k));
    ck_assert_uint_lt(sequence_bytes(&l, cpu.ops, cpu.be), tensor_bytes(&k) + tensor_bytes(&v));
    sequence_destroy(s);
}
END_TEST

START_TEST(what_is_promised_is_what_is_charged_and_all_of_it_comes_back)
{
    static const size_t contexts[] = {1, 255, 256, 257, 4096};
    struct sequence_layout l = layout(contexts[_i]);
    size_t bytes = sequence_bytes(&l, cpu.ops, cpu.be);
    struct sequence *s = make(contexts[_i]);
    struct ledger_report r;

    ledger_report(ledger, POOL_RAM, &r);
    ck_assert_uint_eq(r.accounts[ACCOUNT_KV], bytes);
    ck_assert_uint_eq(r.used, bytes);
    sequence_destroy(s);
    ck_assert_uint_eq(ledger_used(ledger, POOL_RAM), 0);
}
END_TEST

START_TEST(a_context_that_no_machine_holds_is_refused_without_wrapping)
{
    struct sequence_layer wide = {.n_kv_heads = 4096, .k_dim = 4096, .v_dim = 4096};
    struct sequence_layout l = layout((size_t)1 << 40);
    struct sequence *s = NULL;
    struct err err = {0};

    l.layers = &wide;
    l.n_layers = 1;
    ck_assert_uint_eq(sequence_bytes(&l, cpu.ops, cpu.be), SIZE_MAX);
    ledger_set_capacity(ledger, POOL_RAM, (size_t)1 << 40);
    ck_assert_int_eq(sequence_create(&l, ledger, cpu.ops, cpu.be, "test", &s, &err), -ERR_NOMEM);
    ck_assert_ptr_null(s);
}
END_TEST

START_TEST(a_refused_charge_leaves_nothing)
{
    struct sequence_layout l = layout(300);
    struct sequence *s = NULL;

    ledger_refuse_after(ledger, 0);
    ck_assert_int_eq(sequence_create(&l, ledger, cpu.ops, cpu.be, "test", &s, NULL), -ERR_NOMEM);
    ck_assert_uint_eq(ledger_used(ledger, POOL_RAM), 0);
}
END_TEST

START_TEST(a_kv_format_whose_blocks_do_not_divide_the_heads_is_refused)
{
    struct sequence_layer odd = {.n_kv_heads = 1, .k_dim = 80, .v_dim = 48};
    struct sequence_layout l = layout(300);
    struct sequence *s = NULL;
    struct err err = {0};

    l.layers = &odd;
    l.n_layers = 1;
    ck_assert_int_eq(sequence_create(&l, ledger, cpu.ops, cpu.be, "test", &s, &err), -ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.text, "q8_0"));
}
END_TEST

START_TEST(the_common_prefix_ends_at_the_first_other_id)
{
    const int32_t ids[] = {5, 6, 7, 8}, other[] = {5, 6, 9, 8, 1};
    struct sequence *s = make(300);

    sequence_append(s, ids, 2);
    sequence_append(s, ids + 2, 2);
    ck_assert_uint_eq(sequence_length(s), 4);
    ck_assert_mem_eq(sequence_ids(s), ids, sizeof ids);
    ck_assert_uint_eq(sequence_common(s, ids, 4), 4);
    ck_assert_uint_eq(sequence_common(s, ids, 3), 3);
    ck_assert_uint_eq(sequence_common(s, other, 5), 2);
    ck_assert_uint_eq(sequence_common(s, other + 2, 1), 0);
    sequence_truncate(s, 1);
    ck_assert_uint_eq(sequence_common(s, ids, 4), 1);
    sequence_truncate(s, 3); /* nothing comes back */
    ck_assert_uint_eq(sequence_length(s), 1);
    sequence_destroy(s);
}
END_TEST

/* Layer 0 sees all, layer 1 a window of 128: with batches of 64 its ring has 6 chunks. */
static const struct sequence_layer windowed[2] = {
    {.n_kv_heads = 1, .k_dim = 32, .v_dim = 32},
    {.n_kv_heads = 1, .k_dim = 32, .v_dim = 32, .window = 128}};

static struct sequence *make_windowed(size_t n_ctx)
{
    struct sequence_layout l = layout(n_ctx);
    size_t before = ledger_used(ledger, POOL_RAM);
    struct sequence *s = NULL;
    struct err err = {0};

    l.layers = windowed;
    l.n_layers = 2;
    l.n_batch = 64;
    ck_assert_msg(sequence_create(&l, ledger, cpu.ops, cpu.be, "test", &s, &err) == 0, "%s",
                  err.text);
    ck_assert_uint_eq(ledger_used(ledger, POOL_RAM) - before, sequence_bytes(&l, cpu.ops, cpu.be));
    return s;
}

static void append(struct sequence *s, size_t n)
{
    int32_t ids[64] = {0};

    for (size_t at = 0; at < n; at += 64)
        sequence_append(s, ids, MIN(n - at, (size_t)64));
}

START_TEST(a_window_has_a_ring_that_does_not_grow_with_the_context)
{
    struct sequence *small = make_windowed(512), *large = make_windowed(512 * 64);

    ck_assert_uint_eq(sequence_k(small, 1).n[3], 2);
    ck_assert_uint_eq(sequence_k(large, 0).n[3], 128);
    ck_assert_uint_eq(sequence_k(large, 1).n[3], (128 + 64 + SEQUENCE_BACK) / OP_KV_CHUNK + 2);
    ck_assert_uint_eq(sequence_v(large, 1).n[3], sequence_k(large, 1).n[3]);
    sequence_destroy(small);
    sequence_destroy(large);
}
END_TEST

START_TEST(behind_a_window_one_goes_back_by_what_the_ring_holds_or_to_the_start)
{
    struct sequence *s = make_windowed(512 * 64);

    append(s, 1000); /* the ring has not come round */
    ck_assert_uint_eq(sequence_rewind_point(s, 3), 3);
    append(s, 9000);
    ck_assert_uint_eq(sequence_rewind_point(s, 10000 - SEQUENCE_BACK), 10000 - SEQUENCE_BACK);
    ck_assert_uint_eq(sequence_rewind_point(s, 8000), 0);
    ck_assert_uint_eq(sequence_truncate(s, 9500), 9500);
    /* What was overwritten is gone although the length is less again. */
    ck_assert_uint_eq(sequence_rewind_point(s, 8500), 0);
    ck_assert_uint_eq(sequence_truncate(s, 8500), 0);
    append(s, 100);
    ck_assert_uint_eq(sequence_rewind_point(s, 50), 50);
    sequence_destroy(s);
}
END_TEST

START_TEST(a_batch_that_failed_has_overwritten_what_it_would_have)
{
    struct sequence *s = make_windowed(512 * 64);
    size_t chunks = sequence_k(s, 1).n[3], n = (chunks + 1) * OP_KV_CHUNK - 1;

    /* Chunk 1 is the oldest that is held, and the next position takes its place. */
    append(s, n);
    ck_assert_uint_eq(sequence_rewind_point(s, OP_KV_CHUNK + 128), OP_KV_CHUNK + 128);
    sequence_spoiled(s, 2);
    ck_assert_uint_eq(sequence_length(s), n);
    ck_assert_uint_eq(sequence_rewind_point(s, OP_KV_CHUNK + 128), 0);
    ck_assert_uint_eq(sequence_rewind_point(s, 2 * OP_KV_CHUNK + 128), 2 * OP_KV_CHUNK + 128);
    sequence_destroy(s);
}
END_TEST

/* -- recurrent state ------------------------------------------------------------------ */

static const struct sequence_layer mixed[3] = {
    {.conv_rows = 3, .conv_width = 40, .state_heads = 2, .state_rows = 24, .state_cols = 20},
    {.n_kv_heads = 2, .k_dim = 64, .v_dim = 64},
    {.conv_rows = 2, .conv_width = 8}};

static struct sequence *make_recurrent(size_t n_checkpoints)
{
    struct sequence_layout l = layout(300);
    struct sequence *s = NULL;
    struct ledger_report report;
    struct err err = {0};

    l.layers = mixed;
    l.n_checkpoints = n_checkpoints;
    ck_assert_msg(sequence_create(&l, ledger, cpu.ops, cpu.be, "test", &s, &err) == 0, "%s",
                  err.text);
    ledger_report(ledger, POOL_RAM, &report);
    ck_assert_uint_eq(report.accounts[ACCOUNT_STATE], sequence_state_bytes(&l, cpu.ops, cpu.be));
    return s;
}

/* n more positions, after which every state holds the number of them all. */
static void go_on(struct sequence *s, size_t n)
{
    const int32_t id = 7;

    for (size_t i = 0; i < n; i++)
        sequence_append(s, &id, 1);
    *(float *)sequence_state(s, 0).data = (float)sequence_length(s);
    *(float *)sequence_conv(s, 2).data = (float)sequence_length(s);
}

static void holds(const struct sequence *s, size_t length)
{
    ck_assert_uint_eq(sequence_length(s), length);
    ck_assert(*(float *)sequence_state(s, 0).data == (float)length);
    ck_assert(*(float *)sequence_conv(s, 2).data == (float)length);
}

START_TEST(states_have_blocks_of_columns_and_lie_beside_each_other)
{
    struct sequence *s = make_recurrent(1);
    struct tensor state = sequence_state(s, 0), conv = sequence_conv(s, 0);
    struct tensor last = sequence_conv(s, 2);

    ck_assert(sequence_recurrent(s));
    ck_assert_uint_eq(state.n[0], OP_STATE_COLS);
    ck_assert_uint_eq(state.n[1], 24);
    ck_assert_uint_eq(state.n[2], 2); /* 20 columns */
    ck_assert_uint_eq(state.n[3], 2);
    ck_assert_uint_eq(conv.n[0], 40);
    ck_assert_uint_eq(conv.n[1], 3);
    ck_assert((char *)conv.data + tensor_bytes(&conv) <= (char *)state.data);
    ck_assert((char *)state.data + tensor_bytes(&state) <= (char *)last.data);
    ck_assert_ptr_null(sequence_state(s, 1).fmt);
    ck_assert_ptr_null(sequence_state(s, 2).fmt);
    ck_assert(*(float *)state.data == 0.0f);
    sequence_destroy(s);
    ck_assert_uint_eq(ledger_used(ledger, POOL_RAM), 0);
}
END_TEST

START_TEST(a_recurrent_sequence_goes_back_to_checkpoints_and_the_start_alone)
{
    struct sequence *s = make_recurrent(2);

    go_on(s, 10);
    ck_assert_uint_eq(sequence_rewind_point(s, 9), 0);
    ck_assert_uint_eq(sequence_rewind_point(s, 10), 10);
    sequence_checkpoint(s);
    go_on(s, 10);
    sequence_checkpoint(s);
    go_on(s, 10);
    ck_assert_uint_eq(sequence_rewind_point(s, 29), 20);
    ck_assert_uint_eq(sequence_rewind_point(s, 19), 10);
    ck_assert_uint_eq(sequence_truncate(s, 30), 30);
    ck_assert_uint_eq(sequence_truncate(s, 15), 10);
    holds(s, 10);
    ck_assert_uint_eq(sequence_rewind_point(s, 25), 10); /* 20 was of another past */
    go_on(s, 15);
    ck_assert_uint_eq(sequence_truncate(s, 24), 10);
    ck_assert_uint_eq(sequence_truncate(s, 3), 0);
    holds(s, 0);
    sequence_destroy(s);
}
END_TEST

START_TEST(the_oldest_checkpoint_makes_room)
{
    struct sequence *s = make_recurrent(2);

    for (int i = 0; i < 4; i++) {
        go_on(s, 5);
        sequence_checkpoint(s);
        sequence_checkpoint(s); /* of the same position: kept once */
    }
    go_on(s, 1);
    ck_assert_uint_eq(sequence_rewind_point(s, 20), 20);
    ck_assert_uint_eq(sequence_rewind_point(s, 19), 15);
    ck_assert_uint_eq(sequence_rewind_point(s, 14), 0);
    sequence_destroy(s);
}
END_TEST

START_TEST(what_a_failed_batch_spoils_goes_back_to_the_last_checkpoint)
{
    struct sequence *s = make_recurrent(1);

    go_on(s, 4);
    sequence_checkpoint(s);
    go_on(s, 4);
    *(float *)sequence_state(s, 0).data = -1.0f;
    sequence_spoiled(s, 1);
    holds(s, 4);
    sequence_destroy(s);

    s = make(300); /* keys and values stay as they were */
    sequence_append(s, (const int32_t[]){1, 2, 3}, 3);
    sequence_checkpoint(s);
    sequence_spoiled(s, 1);
    ck_assert_uint_eq(sequence_length(s), 3);
    ck_assert(!sequence_recurrent(s));
    sequence_destroy(s);
}
END_TEST

START_TEST(a_refused_charge_of_state_gives_back_that_of_the_caches)
{
    struct sequence_layout l = layout(300);
    struct sequence *s = NULL;

    l.layers = mixed;
    l.n_checkpoints = 2;
    ledger_refuse_after(ledger, 1);
    ck_assert_int_eq(sequence_create(&l, ledger, cpu.ops, cpu.be, "test", &s, NULL), -ERR_NOMEM);
    ck_assert_uint_eq(ledger_used(ledger, POOL_RAM), 0);
}
END_TEST

TCase *tcase_sequence_sequence(void)
{
    TCase *tc = tcase_create("sequence");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, caches_have_a_chunk_of_positions_for_each_head_and_do_not_overlap);
    tcase_add_test(tc, values_that_are_a_part_of_the_keys_are_kept_once);
    tcase_add_loop_test(tc, what_is_promised_is_what_is_charged_and_all_of_it_comes_back, 0, 5);
    tcase_add_test(tc, a_context_that_no_machine_holds_is_refused_without_wrapping);
    tcase_add_test(tc, a_refused_charge_leaves_nothing);
    tcase_add_test(tc, a_kv_format_whose_blocks_do_not_divide_the_heads_is_refused);
    tcase_add_test(tc, a_window_has_a_ring_that_does_not_grow_with_the_context);
    tcase_add_test(tc, behind_a_window_one_goes_back_by_what_the_ring_holds_or_to_the_start);
    tcase_add_test(tc, a_batch_that_failed_has_overwritten_what_it_would_have);
    tcase_add_test(tc, the_common_prefix_ends_at_the_first_other_id);
    tcase_add_test(tc, states_have_blocks_of_columns_and_lie_beside_each_other);
    tcase_add_test(tc, a_recurrent_sequence_goes_back_to_checkpoints_and_the_start_alone);
    tcase_add_test(tc, the_oldest_checkpoint_makes_room);
    tcase_add_test(tc, what_a_failed_batch_spoils_goes_back_to_the_last_checkpoint);
    tcase_add_test(tc, a_refused_charge_of_state_gives_back_that_of_the_caches);
    return tc;
}
