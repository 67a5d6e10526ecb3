/* What op_check() lets through and what it names. */
#include <check.h>
#include <string.h>

#include "backends/formats/act.h"
#include "backends/op.h"

TCase *tcase_backends_op(void);

static struct tensor f32(size_t n0, size_t n1)
{
    return tensor_make(format_of_name("f32"), NULL, n0, n1, 1, 1);
}

static struct tensor of(const char *format, size_t n0, size_t n1, size_t n2, size_t n3)
{
    return tensor_make(format_of_name(format), NULL, n0, n1, n2, n3);
}

static struct tensor act(size_t n, size_t rows)
{
    struct tensor t = f32(n, rows);

    t.stride[1] = act_row_bytes(ACT_Q8_256, n);
    return t;
}

static struct op matmul(void)
{
    struct op op = {.kind = OP_MATMUL, .layer = 3};

    op.p.matmul.n_weights = 1;
    op.p.matmul.act = ACT_Q8_256;
    op.src[0] = act(512, 4);
    op.src[1] = of("q4_k", 512, 100, 1, 1);
    op.src[4] = f32(100, 1);
    op.dst[0] = f32(100, 4);
    return op;
}

static struct op attention(void)
{
    struct op op = {.kind = OP_ATTENTION, .layer = 1};

    op.p.attention.n_heads = 6;
    op.p.attention.n_kv_heads = 2;
    op.p.attention.head_dim = 64;
    op.p.attention.v_dim = 32;
    op.src[0] = f32(384, 5);
    op.src[1] = of("q8_0", 64, OP_KV_CHUNK, 2, 3);
    op.src[2] = of("q8_0", 32, OP_KV_CHUNK, 2, 3);
    op.dst[0] = f32(192, 5);
    return op;
}

static void refused(const struct op *op, const char *because)
{
    struct err err;

    ck_assert_int_eq(op_check(op, &err), -ERR_INTERNAL);
    ck_assert_msg(strstr(err.text, because) != NULL, "'%s' does not say '%s'", err.text, because);
}

static void accepted(const struct op *op)
{
    struct err err;

    ck_assert_msg(op_check(op, &err) == 0, "%s", err.text);
}

START_TEST(every_op_has_a_name)
{
    for (int i = 0; i < OP_COUNT; i++)
        ck_assert_int_gt((int)strlen(op_name((enum op_kind)i)), 0);
    ck_assert_str_eq(op_name(OP_KV_STORE), "KV_STORE");
    ck_assert_str_eq(op_name(OP_COUNT), "unknown");
}
END_TEST

START_TEST(a_sound_matmul_passes)
{
    struct op op = matmul();

    accepted(&op);
}
END_TEST

START_TEST(a_fault_names_the_op_and_its_layer)
{
    struct op op = matmul();

    op.dst[0] = f32(101, 4);
    refused(&op, "MATMUL");
    refused(&op, "layer 3");
}
END_TEST

START_TEST(weights_of_another_width_are_refused)
{
    struct op op = matmul();

    op.src[1] = of("q4_k", 256, 100, 1, 1);
    refused(&op, "bytes where activations take");
}
END_TEST

START_TEST(weights_that_want_other_activations_are_refused)
{
    struct op op = matmul();

    op.src[1] = of("q8_0", 512, 100, 1, 1);
    refused(&op, "wants other activations");
}
END_TEST

START_TEST(a_bias_of_another_length_is_refused)
{
    struct op op = matmul();

    op.src[4] = f32(99, 1);
    refused(&op, "the bias");
}
END_TEST

START_TEST(no_weights_and_too_many_are_refused)
{
    struct op op = matmul();

    op.p.matmul.n_weights = 0;
    refused(&op, "0 weights");
    op.p.matmul.n_weights = 4;
    refused(&op, "4 weights");
}
END_TEST

START_TEST(sizes_that_overflow_are_refused)
{
    struct op op = matmul();

    op.dst[0].n[1] = SIZE_MAX / 2;
    refused(&op, "impossible");
}
END_TEST

START_TEST(an_input_too_many_is_refused)
{
    struct op op = {.kind = OP_SOFTCAP, .p.softcap.cap = 1.0f};

    op.dst[0] = op.src[0] = f32(4, 4);
    accepted(&op);
    op.src[1] = f32(4, 4);
    refused(&op, "one too many");
}
END_TEST

START_TEST(a_sound_attention_passes)
{
    struct op op = attention();

    accepted(&op);
    op.src[3] = f32(6, 1);
    accepted(&op);
}
END_TEST

START_TEST(heads_that_do_not_share_evenly_are_refused)
{
    struct op op = attention();

    op.p.attention.n_heads = 5;
    refused(&op, "cannot share");
    op.p.attention.n_kv_heads = 0;
    refused(&op, "cannot share");
}
END_TEST

START_TEST(caches_of_another_shape_are_refused)
{
    struct op op = attention();

    op.src[1] = of("q8_0", 96, OP_KV_CHUNK, 2, 3);
    refused(&op, "the cache of keys");
    op = attention();
    op.src[2] = of("q8_0", 32, OP_KV_CHUNK, 2, 4);
    refused(&op, "differ in length");
    op = attention();
    op.src[1] = of("q8_0", 64, 100, 2, 3);
    refused(&op, "chunks of 100");
}
END_TEST

START_TEST(a_router_of_too_many_experts_is_refused)
{
    struct op op = {.kind = OP_ROUTER};

    op.p.router.n_expert = OP_MAX_EXPERTS + 1;
    op.p.router.n_used = 2;
    op.src[0] = f32(OP_MAX_EXPERTS + 1, 2);
    op.dst[0] = op.dst[1] = f32(2, 2);
    refused(&op, "at most");
    op.p.router.n_expert = 1;
    refused(&op, "cannot be chosen");
}
END_TEST

START_TEST(heads_begin_on_blocks_of_activations)
{
    struct op op = {.kind = OP_HEADS};

    op.p.heads.act = ACT_Q8_32;
    op.src[0] = f32(128, 4);
    op.src[0].stride[1] = act_row_bytes(ACT_Q8_32, 128);
    op.src[1] = of("q8_0", 64, 10, 2, 1);
    op.dst[0] = f32(20, 4);
    accepted(&op);
    op.dst[0] = f32(21, 4);
    refused(&op, "21 columns");
    op.p.heads.act = ACT_Q8_256;
    refused(&op, "blocks of activations");
}
END_TEST

START_TEST(columns_are_taken_and_joined_by_whole_groups)
{
    struct op slice = {.kind = OP_SLICE, .p.slice = {.from = 4, .n = 2, .group = 6}};
    struct op join = {.kind = OP_JOIN, .p.join = {.n = {4, 2}}};

    slice.src[0] = f32(18, 3);
    slice.dst[0] = f32(6, 3);
    accepted(&slice);
    slice.p.slice.from = 5;
    refused(&slice, "columns 5 to 7 of 6");
    join.src[0] = f32(12, 3);
    join.src[1] = f32(6, 3);
    join.dst[0] = f32(18, 3);
    accepted(&join);
    join.src[1] = f32(2, 3); /* one for all */
    accepted(&join);
    join.src[1] = f32(4, 3);
    refused(&join, "cannot be joined");
}
END_TEST

START_TEST(a_part_of_a_head_that_is_rotated_lies_within_it)
{
    struct op op = {.kind = OP_ROPE, .p.rope = {.n_dims = 8, .offset = 16, .head_dim = 24}};

    op.dst[0] = op.src[0] = f32(48, 2);
    op.src[1] = f32(8, 2);
    accepted(&op);
    op.p.rope.offset = 17;
    refused(&op, "cannot be rotated");
}
END_TEST

START_TEST(keys_are_stored_with_their_values_or_alone)
{
    struct op op = {.kind = OP_KV_STORE};

    op.p.kv_store.n_kv_heads = 1;
    op.p.kv_store.head_dim = 96;
    op.p.kv_store.v_dim = 64;
    op.src[0] = f32(96, 2);
    op.src[2] = of("f16", 96, OP_KV_CHUNK, 1, 2);
    accepted(&op);
    op.src[1] = f32(64, 2);
    refused(&op, "without a cache");
}
END_TEST

START_TEST(a_list_of_positions_leaves_no_window)
{
    struct op op = attention(), indexer = {.kind = OP_INDEXER};

    op.kind = OP_SPARSE;
    op.src[4] = f32(24, 5);
    accepted(&op);
    op.p.attention.window = 16;
    refused(&op, "window");
    indexer.p.indexer.n_heads = 4;
    indexer.p.indexer.head_dim = 32;
    indexer.src[0] = f32(128, 2);
    indexer.src[1] = f32(4, 2);
    indexer.src[2] = of("f16", 32, OP_KV_CHUNK, 1, 2);
    indexer.dst[0] = f32(24, 2);
    accepted(&indexer);
    indexer.src[1] = f32(5, 2);
    refused(&indexer, "weights of heads");
}
END_TEST

START_TEST(groups_of_experts_must_hold_the_chosen)
{
    struct op op = {.kind = OP_ROUTER};

    op.p.router.n_expert = 12;
    op.p.router.n_used = 4;
    op.p.router.n_group = 4;
    op.p.router.n_group_used = 2;
    op.src[0] = f32(12, 2);
    op.dst[0] = op.dst[1] = f32(4, 2);
    accepted(&op);
    op.p.router.n_group_used = 1;
    refused(&op, "groups");
    op.p.router.n_group_used = 5;
    refused(&op, "groups");
    op.p.router.n_group = 5;
    refused(&op, "groups");
}
END_TEST

START_TEST(a_gate_alone_passes_for_activations_that_have_it_only)
{
    struct op op = {.kind = OP_GLU};

    op.dst[0] = op.src[0] = f32(8, 2);
    op.p.glu.act = OP_ACT_RELU2;
    accepted(&op);
    op.p.glu.act = OP_ACT_SILU;
    refused(&op, "second factor");
}
END_TEST

START_TEST(biases_of_another_number_of_experts_are_refused)
{
    struct op op = {.kind = OP_MOE, .p.moe = {.n_expert = 4, .n_used = 2}};

    op.dst[0] = op.src[0] = f32(8, 1);
    op.src[1] = op.src[2] = f32(2, 1);
    op.src[3] = op.src[4] = tensor_make(format_of_name("f32"), NULL, 8, 16, 4, 1);
    op.src[5] = tensor_make(format_of_name("f32"), NULL, 16, 8, 4, 1);
    accepted(&op);
    op.src[6] = f32(16, 4);
    op.src[8] = f32(8, 4);
    accepted(&op);
    op.src[7] = f32(16, 3);
    refused(&op, "3 rows for 4 experts");
}
END_TEST

static void wants_a_bias_as_wide_as_its_weights(struct op *op, size_t *group)
{
    op->dst[0] = op->src[0] = f32(8, 2);
    op->src[1] = op->src[2] = f32(8, 1);
    accepted(op);
    op->src[2] = f32(7, 1);
    refused(op, "the bias has 7");
    op->src[2] = f32(8, 1);
    *group = 3;
    refused(op, "do not divide");
}

START_TEST(a_norm_wants_a_bias_as_wide_as_its_weights)
{
    struct op rms = {.kind = OP_RMSNORM, .p.rmsnorm = {.group = 8}};
    struct op layer = {.kind = OP_LAYERNORM, .p.layernorm = {.group = 8}};

    wants_a_bias_as_wide_as_its_weights(&rms, &rms.p.rmsnorm.group);
    wants_a_bias_as_wide_as_its_weights(&layer, &layer.p.layernorm.group);
}
END_TEST

START_TEST(a_cap_that_is_not_positive_is_refused)
{
    struct op op = {.kind = OP_SOFTCAP};

    op.dst[0] = op.src[0] = f32(8, 2);
    op.p.softcap.cap = 30.0f;
    accepted(&op);
    op.p.softcap.cap = 0.0f;
    refused(&op, "not positive");
}
END_TEST

START_TEST(rope_that_cannot_pair_its_dimensions_is_refused)
{
    struct op op = {.kind = OP_ROPE};

    op.dst[0] = op.src[0] = f32(128, 2);
    op.src[1] = f32(66, 2);
    op.p.rope.head_dim = 64;
    op.p.rope.n_dims = 66;
    refused(&op, "cannot be rotated");
    op.p.rope.head_dim = 100;
    refused(&op, "do not divide");
}
END_TEST

START_TEST(an_unknown_op_is_refused)
{
    struct op op = {.kind = OP_COUNT};

    refused(&op, "unknown");
}
END_TEST

TCase *tcase_backends_op(void)
{
    TCase *tc = tcase_create("op");

    tcase_add_test(tc, every_op_has_a_name);
    tcase_add_test(tc, a_sound_matmul_passes);
    tcase_add_test(tc, a_fault_names_the_op_and_its_layer);
    tcase_add_test(tc, weights_of_another_width_are_refused);
    tcase_add_test(tc, weights_that_want_other_activations_are_refused);
    tcase_add_test(tc, a_bias_of_another_length_is_refused);
    tcase_add_test(tc, no_weights_and_too_many_are_refused);
    tcase_add_test(tc, sizes_that_overflow_are_refused);
    tcase_add_test(tc, an_input_too_many_is_refused);
    tcase_add_test(tc, a_sound_attention_passes);
    tcase_add_test(tc, heads_that_do_not_share_evenly_are_refused);
    tcase_add_test(tc, caches_of_another_shape_are_refused);
    tcase_add_test(tc, a_router_of_too_many_experts_is_refused);
    tcase_add_test(tc, groups_of_experts_must_hold_the_chosen);
    tcase_add_test(tc, heads_begin_on_blocks_of_activations);
    tcase_add_test(tc, columns_are_taken_and_joined_by_whole_groups);
    tcase_add_test(tc, a_part_of_a_head_that_is_rotated_lies_within_it);
    tcase_add_test(tc, keys_are_stored_with_their_values_or_alone);
    tcase_add_test(tc, a_list_of_positions_leaves_no_window);
    tcase_add_test(tc, a_gate_alone_passes_for_activations_that_have_it_only);
    tcase_add_test(tc, rope_that_cannot_pair_its_dimensions_is_refused);
    tcase_add_test(tc, biases_of_another_number_of_experts_are_refused);
    tcase_add_test(tc, a_norm_wants_a_bias_as_wide_as_its_weights);
    tcase_add_test(tc, a_cap_that_is_not_positive_is_refused);
    tcase_add_test(tc, an_unknown_op_is_refused);
    return tc;
}
