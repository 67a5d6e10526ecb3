/* Compiling and running: places, scratch, groups, pins, cancel, on a device that records. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/alloc.h"
#include "daemon/graph/graph_priv.h"
#include "tests/support/gguf_writer.h"
#include "tests/unit/graph/recorder.h"

TCase *tcase_graph_program(void);

#define WIDTH    64
#define N_LAYERS 3
#define VOCAB    10

enum { W_EMBD, W_SQUARE, W_NORM, W_HEAD, N_WEIGHTS };

static struct backend device;
static struct ledger *ledger;
static struct gguf *file;
static struct residency *residency;
static struct sequence *sequence;
#define KEYS_AND_VALUES                                                                            \
    {                                                                                              \
        .n_kv_heads = 1, .k_dim = WIDTH, .v_dim = WIDTH                                            \
    }
static const struct sequence_layer layers[N_LAYERS] = {KEYS_AND_VALUES, KEYS_AND_VALUES,
                                                       KEYS_AND_VALUES};
static struct graph_weight weights[N_WEIGHTS];

static struct sequence_layout layout(void)
{
    return (struct sequence_layout){.layers = layers,
                                    .n_layers = N_LAYERS,
                                    .k_fmt = format_of(FORMAT_f16),
                                    .v_fmt = format_of(FORMAT_f16),
                                    .n_ctx = 300};
}

static void add_weight(struct gguf_writer *w, const char *name, uint64_t in, uint64_t out)
{
    gguf_writer_tensor(w, name, 0, 2, (uint64_t[]){in, out}, NULL);
}

static void set_up(void)
{
    struct sequence_layout l = layout();
    struct gguf_writer w = {0};
    struct err err = {0};
    char *path;
    int fd;

    device =
        (struct backend){.refuse = OP_COUNT, .scratch_rows = 0, .fail_run = -1, .cancel_after = -1};
    gguf_writer_string(&w, "general.architecture", "none");
    add_weight(&w, "embd", WIDTH, VOCAB);
    add_weight(&w, "square", WIDTH, WIDTH);
    add_weight(&w, "norm", WIDTH, 1);
    add_weight(&w, "head", WIDTH, VOCAB);
    fd = gguf_writer_memfd(&w);
    path = gguf_writer_fd_path(fd);
    gguf_writer_clear(&w);
    ck_assert_msg(gguf_open(path, &file, &err) == 0, "%s", err.text);
    free(path);
    close(fd);
    ledger = ledger_create();
    residency = residency_create(file, ledger, &recorder_ops, &device, "test");
    for (size_t i = 0; i < N_WEIGHTS; i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        struct extent e = {
            .name = "weight", .part = t->part, .offset = t->offset, .bytes = t->bytes, .layer = -1};

        weights[i] = (struct graph_weight){tensor_make(t->fmt, NULL, t->dims[0], t->dims[1], 1, 1),
                                           residency_add(residency, &e), 0};
    }
    ck_assert_int_eq(residency_load(residency, NULL, NULL, NULL, &err), 0);
    ck_assert_int_eq(sequence_create(&l, ledger, &recorder_ops, &device, "test", &sequence, &err),
                     0);
}

static void tear_down(void)
{
    sequence_destroy(sequence);
    residency_destroy(residency); /* asserts that nothing is pinned */
    gguf_close(file);
    ck_assert_uint_eq(ledger_used(ledger, POOL_RAM), 0);
    ledger_destroy(ledger);
}

/* A small transformer without a feed-forward part. */
static struct graph *model(void)
{
    struct op_rope_params rope = {.n_dims = WIDTH, .base = 1e4f, .freq_scale = 1, .attn_factor = 1};
    struct graph_attention a = {
        .n_heads = 1, .n_kv_heads = 1, .head_dim = WIDTH, .v_dim = WIDTH, .scale = 1};
    const struct graph_weight *qkv[3] = {&weights[W_SQUARE], &weights[W_SQUARE],
                                         &weights[W_SQUARE]};
    struct graph *g = graph_create();
    graph_value table = graph_rope_table(g, &rope, NULL);
    graph_value x = graph_embed(g, &weights[W_EMBD], 1.0f);

    for (int i = 0; i < N_LAYERS; i++) {
        graph_value y[3], h;

        graph_layer(g, i);
        h = graph_rmsnorm(g, x, &weights[W_NORM], 1e-5f, 0);
        graph_matmul(g, h, 3, qkv, NULL, y);
        graph_rope(g, y[0], table, OP_ROPE_NORM, WIDTH, WIDTH);
        graph_rope(g, y[1], table, OP_ROPE_NORM, WIDTH, WIDTH);
        graph_kv_store(g, y[1], y[2], 1, WIDTH, WIDTH);
        h = graph_attention(g, y[0], &a);
        if (i == N_LAYERS - 1)
            h = graph_rows(g, h);
        x = graph_add(g, x, graph_matmul1(g, h, &weights[W_SQUARE], NULL));
    }
    graph_layer(g, -1);
    x = graph_rmsnorm(g, x, &weights[W_NORM], 1e-5f, 0);
    graph_output(g, graph_matmul1(g, x, &weights[W_HEAD], NULL));
    return g;
}

static struct program *compile_graph(struct graph *g, size_t max_rows, size_t max_out)
{
    struct sequence_layout l = layout();
    struct program_options o = {.max_rows = max_rows, .max_out = max_out, .layout = &l};
    struct program *p = NULL;
    struct err err = {0};

    ck_assert_msg(graph_compile(g, &o, &recorder_ops, &device, &p, &err) == 0, "%s", err.text);
    graph_destroy(g);
    return p;
}

static struct program *compile(size_t max_rows, size_t max_out)
{
    return compile_graph(model(), max_rows, max_out);
}

static bool reads(const struct node *n, graph_value v)
{
    for (int s = 0; s < OP_MAX_SRC; s++)
        if (n->src[s].kind == REF_VALUE && n->src[s].index == v)
            return true;
    return false;
}

static bool writes(const struct node *n, graph_value v)
{
    for (int d = 0; d < OP_MAX_DST; d++)
        if (n->dst[d].kind == REF_VALUE && n->dst[d].index == v)
            return true;
    return false;
}

/* Ops [first, last] during which v is alive. */
static void life(const struct program *p, graph_value v, size_t *first, size_t *last)
{
    *first = p->n_nodes;
    *last = v == p->output ? p->n_nodes : 0;
    for (size_t i = 0; i < p->n_nodes; i++) {
        if (i < *first && writes(&p->nodes[i], v))
            *first = i;
        if (i > *last && reads(&p->nodes[i], v))
            *last = i;
    }
}

START_TEST(values_that_live_at_the_same_time_never_share_bytes)
{
    struct program *p = compile(8, 2);

    for (graph_value a = 0; a < p->n_values; a++)
        for (graph_value b = 0; b < a; b++) {
            const struct place *x = &p->places[a], *y = &p->places[b];
            size_t a0, a1, b0, b1;
            bool handed_on;

            life(p, a, &a0, &a1);
            life(p, b, &b0, &b1);
            if (p->values[a].out != p->values[b].out || a0 > b1 || b0 > a1)
                continue;
            /* a sum may take the place of a term in the op that reads it last */
            handed_on = (a0 == b1 && p->nodes[a0].op.kind == OP_ADD) ||
                        (b0 == a1 && p->nodes[b0].op.kind == OP_ADD);
            ck_assert_msg(handed_on || x->at + x->size <= y->at || y->at + y->size <= x->at,
                          "v%u and v%u overlap", a, b);
        }
    ck_assert_uint_eq(program_arena_bytes(p), 8 * p->batch_row_bytes + 2 * p->out_row_bytes);
    program_destroy(p);
}
END_TEST

/* A mixture, and more of its layer behind it. */
static struct graph *mixture(void)
{
    const struct format *f32 = format_of(FORMAT_f32);
    struct graph_weight router = {tensor_make(f32, NULL, WIDTH, 4, 1, 1), W_HEAD, 0};
    struct graph_weight experts = {tensor_make(f32, NULL, WIDTH, WIDTH, 4, 1), W_SQUARE, 0};
    struct graph_moe m = {.n_expert = 4,
                          .n_used = 2,
                          .router = &router,
                          .gate = &experts,
                          .up = &experts,
                          .down = &experts,
                          .scale = 1};
    struct graph *g = graph_create();
    graph_value x = graph_embed(g, &weights[W_EMBD], 1.0f);

    graph_layer(g, 0);
    x = graph_add(g, x, graph_moe(g, x, &m));
    for (int i = 0; i < 3; i++) {
        graph_value y = graph_rmsnorm(g, x, &weights[W_NORM], 1e-5f, 0);

        graph_matmul1(g, y, &router, NULL); /* as small as ids are */
        x = graph_add(g, x, graph_matmul1(g, x, &weights[W_SQUARE], NULL));
    }
    graph_layer(g, -1);
    x = graph_rows(g, graph_rmsnorm(g, x, &weights[W_NORM], 1e-5f, 0));
    graph_output(g, graph_matmul1(g, x, &weights[W_HEAD], NULL));
    return g;
}

START_TEST(what_a_mixture_chose_is_there_until_its_layer_has_run)
{
    struct program *p = compile_graph(mixture(), 4, 1);
    graph_value ids = GRAPH_NONE;
    size_t born = 0, unused, n = 0;

    for (size_t i = 0; i < p->n_nodes; i++)
        if (p->nodes[i].op.kind == OP_MOE)
            ids = p->nodes[i].src[MOE_IDS].index;
    ck_assert(ids != GRAPH_NONE);
    life(p, ids, &born, &unused);
    for (graph_value v = 0; v < p->n_values; v++) {
        const struct place *x = &p->places[ids], *y = &p->places[v];
        size_t first, last;

        life(p, v, &first, &last);
        if (v == ids || p->values[v].out || first < born || p->nodes[first].op.layer != 0)
            continue;
        ck_assert_msg(x->at + x->size <= y->at || y->at + y->size <= x->at, "v%u lies on it", v);
        n++;
    }
    ck_assert_uint_gt(n, 6);
    program_destroy(p);
}
END_TEST

START_TEST(the_arena_is_smaller_than_all_values_together)
{
    struct program *p = compile(1, 1);
    size_t sum = 0;

    for (graph_value v = 0; v < p->n_values; v++)
        sum += p->places[v].size;
    ck_assert_uint_lt(program_arena_bytes(p), sum / 2);
    program_destroy(p);
}
END_TEST

START_TEST(scratch_is_the_most_of_any_number_of_rows)
{
    struct program *p = compile(100, 2);

    ck_assert_uint_eq(program_scratch_bytes(p), 100);
    program_destroy(p);
    device.scratch_rows = 7;
    p = compile(100, 2);
    ck_assert_uint_eq(program_scratch_bytes(p), 4242);
    program_destroy(p);
}
END_TEST

START_TEST(an_op_that_the_device_cannot_run_is_refused_by_name)
{
    struct sequence_layout l = layout();
    struct program_options o = {.max_rows = 4, .max_out = 1, .layout = &l};
    struct graph *g = model();
    struct program *p = NULL;
    struct err err = {0};

    device.refuse = OP_ATTENTION;
    ck_assert_int_eq(graph_compile(g, &o, &recorder_ops, &device, &p, &err), -ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.text, "ATTENTION"));
    ck_assert_ptr_null(p);
    graph_destroy(g);
}
END_TEST

static void *arena;

static int run(struct program *p, size_t rows, size_t n_out, const float **logits, struct err *err)
{
    static const int32_t ids[16] = {1, 2, 3}, rows_out[16] = {0, 1, 2};
    struct program_place place = {.ops = &recorder_ops,
                                  .be = &device,
                                  .residency = residency,
                                  .sequence = sequence,
                                  .arena = arena};
    struct op_run r = {.tokens = ids,
                       .rows = rows,
                       .rows_out = rows_out,
                       .n_out = n_out,
                       .cancel = &device.cancel};

    device.n_runs = 0;
    return program_run(p, &place, &r, logits, err);
}

START_TEST(each_layer_is_one_run_and_the_last_is_cut_where_rows_are)
{
    static const int want_layer[] = {-1, 0, 1, 2, 2, -1};
    static const size_t want_rows[] = {5, 5, 5, 5, 2, 2};
    struct program *p = compile(8, 4);
    const float *logits = NULL;
    struct err err = {0};

    arena = alloc_pages(program_arena_bytes(p), 0);
    ck_assert_msg(run(p, 5, 2, &logits, &err) == 0, "%s", err.text);
    ck_assert_int_eq(device.n_runs, 6);
    for (int i = 0; i < 6; i++) {
        ck_assert_int_eq(device.layer[i], want_layer[i]);
        ck_assert_uint_eq(device.rows[i], want_rows[i]);
    }
    ck_assert_ptr_nonnull(logits);
    /* within the arena of this batch */
    ck_assert((const char *)(logits + 2 * VOCAB) <=
              (char *)arena + 5 * p->batch_row_bytes + 2 * p->out_row_bytes);
    free_pages(arena, program_arena_bytes(p));
    program_destroy(p);
}
END_TEST

START_TEST(without_wanted_rows_nothing_runs_past_the_last_cache)
{
    struct program *p = compile(8, 4);
    const float *logits = NULL;
    struct err err = {0};

    arena = alloc_pages(program_arena_bytes(p), 0);
    ck_assert_int_eq(run(p, 3, 2, &logits, &err), 0);
    ck_assert_int_eq(run(p, 3, 0, &logits, &err), 0);
    ck_assert_ptr_null(logits);
    ck_assert_int_eq(device.n_runs, 4);
    ck_assert_uint_lt(device.n_ops[3], device.n_ops[2]); /* ends with the store */
    free_pages(arena, program_arena_bytes(p));
    program_destroy(p);
}
END_TEST

START_TEST(cancel_is_seen_between_layers_and_a_failed_run_leaves_nothing_pinned)
{
    struct program *p = compile(8, 4);
    const float *logits = NULL;
    struct err err = {0};

    arena = alloc_pages(program_arena_bytes(p), 0);
    for (int i = 0; i < 6; i++) {
        device.fail_run = i;
        ck_assert_int_eq(run(p, 5, 2, &logits, &err), -ERR_INTERNAL);
    }
    device.fail_run = -1;
    for (int i = 1; i < 6; i++) {
        device.cancel = false;
        device.cancel_after = i;
        ck_assert_int_eq(run(p, 5, 2, &logits, &err), -ERR_CANCELLED);
        ck_assert_int_eq(device.n_runs, i);
    }
    free_pages(arena, program_arena_bytes(p));
    program_destroy(p);
}
END_TEST

START_TEST(a_dump_names_every_op_once)
{
    struct program *p = compile(8, 4);
    struct str text = {0};
    size_t lines = 0;

    program_dump(p, &text);
    for (const char *c = str_text(&text); *c; c++)
        lines += *c == '\n';
    ck_assert_uint_eq(lines, program_n_ops(p) + 1);
    ck_assert_ptr_nonnull(strstr(text.p, "L2 ATTENTION:"));
    ck_assert_ptr_nonnull(strstr(text.p, "ROWS:"));
    str_clear(&text);
    program_destroy(p);
}
END_TEST

TCase *tcase_graph_program(void)
{
    TCase *tc = tcase_create("program");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, values_that_live_at_the_same_time_never_share_bytes);
    tcase_add_test(tc, what_a_mixture_chose_is_there_until_its_layer_has_run);
    tcase_add_test(tc, the_arena_is_smaller_than_all_values_together);
    tcase_add_test(tc, scratch_is_the_most_of_any_number_of_rows);
    tcase_add_test(tc, an_op_that_the_device_cannot_run_is_refused_by_name);
    tcase_add_test(tc, each_layer_is_one_run_and_the_last_is_cut_where_rows_are);
    tcase_add_test(tc, without_wanted_rows_nothing_runs_past_the_last_cache);
    tcase_add_test(tc, cancel_is_seen_between_layers_and_a_failed_run_leaves_nothing_pinned);
    tcase_add_test(tc, a_dump_names_every_op_once);
    return tc;
}
