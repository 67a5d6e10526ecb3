/* Building: what is shared, what is split, where rows are cut. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "daemon/graph/graph_priv.h"

TCase *tcase_graph_build(void);

static struct graph_weight weight(enum format_id f, size_t in, size_t out, extent_id id)
{
    return (struct graph_weight){tensor_make(format_of(f), NULL, in, out, 1, 1), id, 0};
}

static size_t count(const struct graph *g, enum op_kind kind)
{
    size_t n = 0;

    for (size_t i = 0; i < g->n_nodes; i++)
        n += g->nodes[i].op.kind == kind;
    return n;
}

/* An embedding of 256 values: where all of these graphs begin. */
static struct graph *begin(graph_value *ret_x)
{
    struct graph_weight table = weight(FORMAT_f16, 256, 10, 0);
    struct graph *g = graph_create();

    *ret_x = graph_embed(g, &table, 1.0f);
    return g;
}

START_TEST(weights_that_share_an_input_and_its_activations_are_one_op)
{
    struct graph_weight w[3] = {weight(FORMAT_q4_k, 256, 64, 1), weight(FORMAT_q6_k, 256, 32, 2),
                                weight(FORMAT_q4_k, 256, 32, 3)};
    const struct graph_weight *p[3] = {&w[0], &w[1], &w[2]};
    graph_value x, y[3];
    struct graph *g = begin(&x);
    const struct node *n;

    graph_matmul(g, x, 3, p, NULL, y);
    ck_assert_uint_eq(count(g, OP_QUANTIZE), 1);
    ck_assert_uint_eq(count(g, OP_MATMUL), 1);
    n = &g->nodes[g->n_nodes - 1];
    ck_assert_uint_eq(n->op.p.matmul.n_weights, 3);
    ck_assert_int_eq(n->op.p.matmul.act, ACT_Q8_256);
    for (int i = 0; i < 3; i++) {
        ck_assert_uint_eq(n->src[1 + i].index, i + 1);
        ck_assert_uint_eq(n->dst[i].index, y[i]);
        ck_assert_uint_eq(g->values[y[i]].width, w[i].t.n[1]);
    }
    graph_destroy(g);
}
END_TEST

START_TEST(weights_of_different_activations_are_split_and_results_keep_their_places)
{
    struct graph_weight w[3] = {weight(FORMAT_q4_k, 256, 64, 1), weight(FORMAT_f16, 256, 32, 2),
                                weight(FORMAT_q8_0, 256, 16, 3)};
    struct graph_weight bias = weight(FORMAT_f32, 32, 1, 4);
    const struct graph_weight *p[3] = {&w[0], &w[1], &w[2]};
    const struct graph_weight *b[3] = {NULL, &bias, NULL};
    graph_value x, y[3];
    struct graph *g = begin(&x);

    graph_matmul(g, x, 3, p, b, y);
    ck_assert_uint_eq(count(g, OP_QUANTIZE), 2); /* f16 takes the row as it is */
    ck_assert_uint_eq(count(g, OP_MATMUL), 3);
    for (size_t i = 0; i < g->n_nodes; i++) {
        const struct node *n = &g->nodes[i];

        if (n->op.kind != OP_MATMUL)
            continue;
        ck_assert_uint_eq(n->op.p.matmul.n_weights, 1);
        ck_assert_int_eq(n->src[4].kind, n->src[1].index == 2 ? REF_WEIGHT : REF_NONE);
        ck_assert_uint_eq(n->dst[0].index, y[n->src[1].index - 1]);
    }
    graph_destroy(g);
}
END_TEST

START_TEST(an_input_is_quantised_once_for_each_kind_and_again_when_it_was_rotated)
{
    struct graph_weight a = weight(FORMAT_q4_0, 256, 256, 1), b = weight(FORMAT_q8_0, 256, 256, 2);
    struct op_rope_params rope = {.n_dims = 64, .base = 1e4f, .freq_scale = 1, .attn_factor = 1};
    graph_value x, table;
    struct graph *g = begin(&x);

    table = graph_rope_table(g, &rope, NULL);
    graph_matmul1(g, x, &a, NULL);
    graph_matmul1(g, x, &b, NULL);
    ck_assert_uint_eq(count(g, OP_QUANTIZE), 1);
    graph_rope(g, x, table, OP_ROPE_NEOX, 64, 64);
    graph_matmul1(g, x, &a, NULL);
    ck_assert_uint_eq(count(g, OP_QUANTIZE), 2);
    graph_destroy(g);
}
END_TEST

START_TEST(a_sum_with_wanted_rows_cuts_the_other_term_once)
{
    graph_value x, y, z;
    struct graph *g = begin(&x);

    y = graph_rows(g, graph_scale(g, x, 2.0f));
    z = graph_add(g, x, y);
    ck_assert(g->values[z].out);
    ck_assert_uint_eq(count(g, OP_ROWS), 2);
    z = graph_add(g, z, x);
    ck_assert_uint_eq(count(g, OP_ROWS), 2);
    ck_assert_uint_eq(graph_rows(g, z), z);
    graph_destroy(g);
}
END_TEST

START_TEST(a_mixture_routes_in_f32_and_gives_the_experts_one_quantised_input)
{
    struct graph_weight router = weight(FORMAT_f32, 256, 4, 1);
    struct graph_weight gate = {tensor_make(format_of(FORMAT_q4_k), NULL, 256, 512, 4, 1), 2, 0};
    struct graph_weight down = {tensor_make(format_of(FORMAT_q8_0), NULL, 512, 256, 4, 1), 3, 0};
    struct graph_moe m = {.n_expert = 4,
                          .n_used = 2,
                          .router = &router,
                          .gate = &gate,
                          .up = &gate,
                          .down = &down,
                          .scale = 1};
    graph_value x, y;
    struct graph *g = begin(&x);
    const struct node *n;

    y = graph_moe(g, x, &m);
    n = &g->nodes[g->n_nodes - 1];
    ck_assert_int_eq(n->op.kind, OP_MOE);
    ck_assert_int_eq(n->op.p.moe.in_act, ACT_Q8_256);
    ck_assert_int_eq(n->op.p.moe.mid_act, ACT_Q8_32);
    ck_assert_uint_eq(n->dst[0].index, y);
    ck_assert_uint_eq(count(g, OP_QUANTIZE), 1);
    ck_assert_uint_eq(count(g, OP_ROUTER), 1);
    graph_destroy(g);
}
END_TEST

START_TEST(parts_of_a_weight_are_rows_also_where_there_is_one)
{
    struct graph_weight one = weight(FORMAT_q8_0, 256, 1, 1), many = weight(FORMAT_q8_0, 256, 9, 2);
    struct graph_weight list = weight(FORMAT_f32, 9, 1, 3), absent = {0}, part;

    part = graph_weight_rows(&one, 0, 1);
    ck_assert(part.t.n[0] == 256 && part.t.n[1] == 1 && part.offset == 0);
    part = graph_weight_rows(&many, 4, 5);
    ck_assert(part.t.n[0] == 256 && part.t.n[1] == 5 && part.offset == 4 * 8 * 34);
    part = graph_weight_columns(&list, 4, 5);
    ck_assert(part.t.n[0] == 5 && part.t.n[1] == 1 && part.offset == 4 * sizeof(float));
    ck_assert_ptr_null(graph_weight_rows(&absent, 0, 1).t.fmt);
    ck_assert_ptr_null(graph_weight_columns(&absent, 0, 1).t.fmt);
}
END_TEST

TCase *tcase_graph_build(void)
{
    TCase *tc = tcase_create("build");

    tcase_add_test(tc, weights_that_share_an_input_and_its_activations_are_one_op);
    tcase_add_test(tc, weights_of_different_activations_are_split_and_results_keep_their_places);
    tcase_add_test(tc, an_input_is_quantised_once_for_each_kind_and_again_when_it_was_rotated);
    tcase_add_test(tc, a_sum_with_wanted_rows_cuts_the_other_term_once);
    tcase_add_test(tc, a_mixture_routes_in_f32_and_gives_the_experts_one_quantised_input);
    tcase_add_test(tc, parts_of_a_weight_are_rows_also_where_there_is_one);
    return tc;
}
