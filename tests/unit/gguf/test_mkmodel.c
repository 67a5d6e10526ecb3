/* Synthetic models have the structure that the tools made for them expect. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/alloc.h"
#include "common/hash.h"
#include "daemon/gguf/gguf.h"
#include "tests/support/mkmodel.h"

/*
 * Everything of a file but its data, as a generator of its own in another
 * language wrote it: keys, vocabulary, template, names, shapes, types and
 * offsets.  All with --vocab 600, mixtures of experts with --experts 8.
 */
static const struct {
    const char *preset, *type;
    unsigned layers;
    size_t head_bytes;
    uint64_t head;
} known[] = {
    {"smol-135m", "Q4_K_M", 2, 14720, 0x9ca749b6f64722b6},
    {"tinyllama-1.1b", "Q5_K_M", 1, 14272, 0xe1765611c9d833be},
    {"llama-8b", "Q2_K", 1, 14240, 0x195bb49f3c54c7b5},
    {"llama-70b", "Q4_0", 1, 14240, 0xba34fd403e084bc4},
    {"qwen3-0.6b", "IQ4_XS", 2, 14912, 0xf996d3b4ae084b80},
    {"qwen3-4b", "Q3_K_M", 1, 14336, 0xd21430c9718a6848},
    {"qwen3moe-30b-a3b", "Q4_K_M", 1, 14592, 0xcc15ef0bd382d9ea},
    {"qwen3moe-tiny", "Q8_0", 2, 15296, 0xb778b2dee2c0d1fc},
    {"qwen35moe-35b-a3b", "IQ2_M", 4, 18848, 0x9ba49ac6c26936ed},
    {"gpt-oss-20b", "MXFP4", 2, 16320, 0x7d2f6dd9d55ef17a},
};

static struct mkmodel options(const char *preset, const char *type, unsigned layers)
{
    struct mkmodel o = {
        .preset = *mkmodel_preset_of(preset), .type = mkmodel_type_of(type), .seed = 1};

    o.preset.n_layers = layers;
    o.preset.n_vocab = 600;
    o.preset.n_expert = o.preset.n_expert ? 8 : 0;
    return o;
}

START_TEST(a_model_has_the_head_that_the_other_generator_writes)
{
    struct mkmodel o = options(known[_i].preset, known[_i].type, known[_i].layers);
    struct mkmodel_plan plan;
    struct str head = {0};

    mkmodel_plan(&o, &plan);
    gguf_writer_head(&plan.w, &head);
    ck_assert_uint_eq(head.len, known[_i].head_bytes);
    ck_assert_uint_eq(hash_bytes(head.p, head.len), known[_i].head);
    str_clear(&head);
    mkmodel_plan_clear(&plan);
}
END_TEST

START_TEST(every_preset_is_known)
{
    size_t n = 0;

    while (mkmodel_presets[n].name)
        n++;
    ck_assert_uint_eq(n, ARRAY_LEN(known));
    ck_assert_ptr_null(mkmodel_preset_of("qwen3"));
    ck_assert_ptr_null(mkmodel_type_of("Q4_K"));
}
END_TEST

/* -- the data ----------------------------------------------------------------------- */

static char *path_of(int number)
{
    return xasprintf("mkmodel-test-%d-%d.gguf", (int)getpid(), number);
}

static struct gguf *save(const struct mkmodel *o, const char *path)
{
    struct gguf *g = NULL;
    struct err err = {0};
    uint64_t written = mkmodel_save(o, path);

    ck_assert_msg(gguf_open(path, &g, &err) == 0, "refused: %s", err.text);
    ck_assert_uint_eq(gguf_file_bytes(g), written);
    return g;
}

static uint64_t digest(const struct gguf *g, const struct gguf_tensor *t)
{
    void *bytes = xmalloc(t->bytes);
    uint64_t h;

    ck_assert_int_eq(pread(gguf_fd(g, t->part), bytes, t->bytes, (off_t)t->offset),
                     (ssize_t)t->bytes);
    h = hash_bytes(bytes, t->bytes);
    free(bytes);
    return h;
}

START_TEST(the_seed_and_nothing_else_makes_the_weights)
{
    struct mkmodel o = options("qwen3moe-tiny", "Q4_K_M", 1);
    uint64_t seen[3];

    for (int i = 0; i < 3; i++) {
        char *path = path_of(i);
        struct gguf *g;

        o.seed = i < 2 ? 7 : 8;
        g = save(&o, path);
        seen[i] = digest(g, gguf_find_tensor(g, "blk.0.ffn_down_exps.weight"));
        gguf_close(g);
        unlink(path);
        free(path);
    }
    ck_assert_uint_eq(seen[0], seen[1]);
    ck_assert_uint_ne(seen[0], seen[2]);
}
END_TEST

/* About N(0, 0.02), as real ones: neither all small nor any huge. */
static void expect_sane(const struct gguf *g, const struct gguf_tensor *t)
{
    size_t n = t->dims[0] * 4;
    char *row = xmalloc(format_row_bytes(t->fmt, n));
    float *x = xreallocarray(NULL, n, sizeof *x);
    double sum = 0;

    ck_assert_int_gt(pread(gguf_fd(g, 0), row, format_row_bytes(t->fmt, n), (off_t)t->offset), 0);
    t->fmt->to_f32(row, x, n);
    for (size_t i = 0; i < n; i++) {
        ck_assert(x[i] > -0.2f && x[i] < 0.2f); /* false for NaN */
        sum += (double)x[i] * (double)x[i];
    }
    ck_assert_msg(sum / (double)n > 1.5e-4 && sum / (double)n < 7e-4, "%s: variance %g",
                  t->fmt->name, sum / (double)n);
    free(x);
    free(row);
}

START_TEST(weights_of_every_type_are_sane)
{
    struct mkmodel o = options("smol-135m", mkmodel_types[_i].name, 1);
    char *path = path_of(10 + _i);
    struct gguf *g;

    o.preset.n_embd = 256; /* a whole block of every type */
    g = save(&o, path);
    expect_sane(g, gguf_find_tensor(g, "blk.0.attn_q.weight"));
    expect_sane(g, gguf_find_tensor(g, "blk.0.attn_v.weight"));
    expect_sane(g, gguf_find_tensor(g, "token_embd.weight"));
    gguf_close(g);
    unlink(path);
    free(path);
}
END_TEST

static int n_types(void)
{
    int n = 0;

    while (mkmodel_types[n].name)
        n++;
    return n;
}

TCase *tcase_gguf_mkmodel(void);

TCase *tcase_gguf_mkmodel(void)
{
    TCase *c = tcase_create("mkmodel");

    tcase_add_loop_test(c, a_model_has_the_head_that_the_other_generator_writes, 0,
                        ARRAY_LEN(known));
    tcase_add_test(c, every_preset_is_known);
    tcase_add_test(c, the_seed_and_nothing_else_makes_the_weights);
    tcase_add_loop_test(c, weights_of_every_type_are_sane, 0, n_types());
    return c;
}
