/* The CPU as the daemon sees it: probing, opening, memory, and what run() refuses. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "backends/backend.h"

extern const struct backend_ops backend_cpu;
TCase *tcase_cpu_cpu(void);

static struct backend *open_cpu(unsigned threads, const char *tier)
{
    struct backend_options opt = {.threads = threads, .cpu = tier};
    struct backend *be = NULL;
    struct device dev;
    struct err err;

    ck_assert_int_eq(backend_cpu.probe(&dev, 1, &err), 1);
    ck_assert_msg(backend_cpu.open(&dev, &opt, &be, &err) == 0, "%s", err.text);
    return be;
}

static struct tensor f32(float *data, size_t n0, size_t n1)
{
    return tensor_make(format_of_name("f32"), data, n0, n1, 1, 1);
}

START_TEST(there_is_one_cpu_and_it_says_what_it_is)
{
    struct device dev = {0};
    struct err err;

    ck_assert_int_eq(backend_cpu.probe(&dev, 0, &err), 0);
    ck_assert_int_eq(backend_cpu.probe(&dev, 1, &err), 1);
    ck_assert_str_eq(dev.name, "cpu");
    ck_assert_ptr_nonnull(strstr(dev.detail, "thread"));
    ck_assert_uint_eq(dev.memory_bytes, 0);
}
END_TEST

START_TEST(a_tier_can_be_asked_for)
{
    struct backend *be = open_cpu(1, "scalar");
    struct device dev;

    backend_cpu.describe(be, &dev);
    ck_assert_str_eq(dev.detail, "scalar, 1 thread");
    backend_cpu.close(be);
}
END_TEST

START_TEST(an_unknown_tier_is_refused_by_name)
{
    struct backend_options opt = {.cpu = "abacus"};
    struct backend *be = NULL;
    struct device dev;
    struct err err;

    ck_assert_int_eq(backend_cpu.probe(&dev, 1, &err), 1);
    ck_assert_int_eq(backend_cpu.open(&dev, &opt, &be, &err), -ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.text, "abacus"));
    ck_assert_ptr_null(be);
}
END_TEST

START_TEST(memory_is_zeroed_and_counted_in_pages)
{
    struct backend *be = open_cpu(1, "auto");
    struct region r;
    struct err err;

    ck_assert_int_eq(backend_cpu.alloc(be, 5000, &r, &err), 0);
    ck_assert_uint_eq(r.bytes, backend_cpu.alloc_bytes(be, 5000));
    ck_assert_uint_ge(r.bytes, 5000);
    for (size_t i = 0; i < 5000; i++)
        ck_assert_int_eq(((char *)r.data)[i], 0);
    backend_cpu.free(be, &r);
    ck_assert_ptr_null(r.data);
    backend_cpu.free(be, &r);
    backend_cpu.close(be);
}
END_TEST

START_TEST(a_token_outside_the_table_is_refused)
{
    struct backend *be = open_cpu(2, "auto");
    float table[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[4] = {0};
    struct op op = {.kind = OP_EMBED, .p.embed.scale = 1.0f};
    int32_t tokens[2] = {1, 4};
    struct op_run run = {.tokens = tokens, .rows = 2};
    struct err err;

    op.src[0] = f32(table, 2, 4);
    op.dst[0] = f32(out, 2, 2);
    ck_assert_int_eq(backend_cpu.run(be, &op, 1, &run, NULL, &err), -ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.text, "token 4"));
    tokens[1] = -1;
    ck_assert_int_eq(backend_cpu.run(be, &op, 1, &run, NULL, &err), -ERR_INVALID);
    tokens[1] = 3;
    ck_assert_int_eq(backend_cpu.run(be, &op, 1, &run, NULL, &err), 0);
    ck_assert(out[0] == 3.0f && out[3] == 8.0f);
    backend_cpu.close(be);
}
END_TEST

START_TEST(more_rows_than_bound_are_refused)
{
    struct backend *be = open_cpu(1, "auto");
    float x[8] = {0};
    struct op op = {.kind = OP_SCALE, .p.scale.s = 2.0f};
    struct op_run run = {.rows = 3};
    struct err err;

    op.src[0] = op.dst[0] = f32(x, 4, 2);
    ck_assert_int_eq(backend_cpu.run(be, &op, 1, &run, NULL, &err), -ERR_INTERNAL);
    ck_assert_ptr_nonnull(strstr(err.text, "bound for 2 rows"));
    backend_cpu.close(be);
}
END_TEST

START_TEST(positions_past_the_cache_are_refused)
{
    struct backend *be = open_cpu(1, "auto");
    static float cache[2][32 * OP_KV_CHUNK];
    float row[32] = {0};
    struct op op = {.kind = OP_ATTENTION};
    struct op_run run = {.rows = 1, .pos = OP_KV_CHUNK};
    struct err err;

    op.p.attention.n_heads = op.p.attention.n_kv_heads = 1;
    op.p.attention.head_dim = op.p.attention.v_dim = 32;
    op.src[0] = op.dst[0] = f32(row, 32, 1);
    for (int i = 0; i < 2; i++)
        op.src[1 + i] = tensor_make(format_of_name("f32"), cache[i], 32, OP_KV_CHUNK, 1, 1);
    ck_assert_int_eq(backend_cpu.run(be, &op, 1, &run, NULL, &err), -ERR_INTERNAL);
    ck_assert_ptr_nonnull(strstr(err.text, "do not fit the cache"));
    backend_cpu.close(be);
}
END_TEST

START_TEST(no_rows_wanted_leaves_the_rest_undone)
{
    struct backend *be = open_cpu(2, "auto");
    float x[4] = {1, 2, 3, 4}, y[4] = {0};
    struct op ops[2] = {{.kind = OP_ROWS}, {.kind = OP_SCALE, .p.scale.s = 2.0f}};
    struct op_run run = {.rows = 2, .n_out = 0};
    struct err err;

    ops[0].src[0] = f32(x, 2, 2);
    ops[0].dst[0] = ops[1].src[0] = ops[1].dst[0] = f32(y, 2, 2);
    ck_assert_int_eq(backend_cpu.run(be, ops, 2, &run, NULL, &err), 0);
    ck_assert(y[0] == 0.0f && y[3] == 0.0f);
    backend_cpu.close(be);
}
END_TEST

TCase *tcase_cpu_cpu(void)
{
    TCase *tc = tcase_create("cpu");

    tcase_add_test(tc, there_is_one_cpu_and_it_says_what_it_is);
    tcase_add_test(tc, a_tier_can_be_asked_for);
    tcase_add_test(tc, an_unknown_tier_is_refused_by_name);
    tcase_add_test(tc, memory_is_zeroed_and_counted_in_pages);
    tcase_add_test(tc, a_token_outside_the_table_is_refused);
    tcase_add_test(tc, more_rows_than_bound_are_refused);
    tcase_add_test(tc, positions_past_the_cache_are_refused);
    tcase_add_test(tc, no_rows_wanted_leaves_the_rest_undone);
    return tc;
}
