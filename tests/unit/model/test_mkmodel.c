/* Synthetic models load, and compute sane logits. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/alloc.h"
#include "tests/support/mkmodel.h"
#include "tests/unit/model/tiny.h"

TCase *tcase_model_mkmodel(void);

/* The families that this build runs, made narrow: shapes keep their proportions' meaning, not their size. */
static const char *const runnable[] = {"smol-135m", "qwen3-0.6b", "qwen3moe-tiny", "gpt-oss-20b"};

static struct mkmodel small(const char *name)
{
    struct mkmodel o = {
        .preset = *mkmodel_preset_of(name), .type = mkmodel_type_of("Q4_K_M"), .seed = 3};

    o.preset.n_layers = 2;
    o.preset.n_vocab = 300;
    if (o.preset.n_embd < 2880) /* gpt-oss has a head of its own, which narrow ones have not */
        o.preset.n_embd = 512;
    o.preset.n_ff = 512;
    o.preset.n_expert = o.preset.n_expert ? 8 : 0;
    o.preset.n_ff_exp = o.preset.n_ff_exp ? 256 : 0;
    return o;
}

/* Of a random model: neither all alike, nor one that swallows the rest, nor NaN. */
static void expect_sane(const float *logits, size_t n)
{
    double sum = 0, squares = 0;

    for (size_t i = 0; i < n; i++) {
        ck_assert(isfinite(logits[i]));
        sum += (double)logits[i];
        squares += (double)logits[i] * (double)logits[i];
    }
    squares = sqrt(squares / (double)n - sum / (double)n * sum / (double)n);
    ck_assert_msg(squares > 0.05 && squares < 5, "deviation %g", squares);
}

START_TEST(a_synthetic_model_computes_sane_logits)
{
    struct model_options options = {.n_ctx = 256, .n_batch = 64};
    struct tiny_engine e = {.cpu = cpu_backend_open(2, NULL), .ledger = ledger_create()};
    char *path = xasprintf(P_tmpdir "/rnbd-mkmodel-%d.gguf", (int)getpid());
    struct mkmodel o = small(runnable[_i]);
    const int32_t ids[] = {72, 101, 108, 108, 111}, last = ARRAY_LEN(ids) - 1;
    const float *logits;
    struct err err = {0};

    mkmodel_save(&o, path);
    ck_assert_msg(model_open(path, &e.m, &err) == 0, "%s", err.text);
    ck_assert_msg(
        model_load(e.m, &options, e.ledger, e.cpu.ops, e.cpu.be, NULL, NULL, NULL, &err) == 0, "%s",
        err.text);
    unlink(path);
    ck_assert_ptr_nonnull(model_tokenizer(e.m));
    ck_assert_int_eq(model_eval(e.m, ids, ARRAY_LEN(ids), &last, 1, NULL, &logits, &err), 0);
    expect_sane(logits, o.preset.n_vocab);
    tiny_close(&e);
    free(path);
}
END_TEST

TCase *tcase_model_mkmodel(void)
{
    TCase *tc = tcase_create("mkmodel");

    tcase_add_loop_test(tc, a_synthetic_model_computes_sane_logits, 0, ARRAY_LEN(runnable));
    return tc;
}
