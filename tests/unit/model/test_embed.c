/* Embedding models: pooling, chunks, and what is refused. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "tests/unit/model/tiny.h"

TCase *tcase_model_embed(void);

#define N 100

static int32_t ids[N];

static void set_up(void)
{
    tiny_ids(ids, N);
}

static const char *const names[] = {NULL, "mean", "cls", "last"};

START_TEST(chunks_do_not_change_a_bit_of_an_embedding)
{
    struct tiny_model o = {.family = "qwen3", .seed = 5, .pooling = (unsigned)_i};
    struct model_options whole = {.n_ctx = 512, .n_batch = 128}, parts = {.n_ctx = 512};
    struct tiny_engine a = tiny_load(&o, &whole, 1, NULL), b;
    float x[TINY_N_EMBD], y[TINY_N_EMBD];
    struct model_info info;
    struct err err;

    model_info(a.m, &info);
    ck_assert_str_eq(info.pooling, names[_i]);
    ck_assert_int_eq(model_embed(a.m, ids, N, NULL, x, &err), 0);
    parts.n_batch = 7;
    b = tiny_load(&o, &parts, 2, NULL);
    ck_assert_int_eq(model_embed(b.m, ids, N, NULL, y, &err), 0);
    ck_assert_int_eq(memcmp(x, y, sizeof x), 0);
    /* A second text does not feel the first. */
    ck_assert_int_eq(model_embed(a.m, ids + 1, 3, NULL, y, &err), 0);
    ck_assert_int_eq(model_embed(a.m, ids, N, NULL, y, &err), 0);
    ck_assert_int_eq(memcmp(x, y, sizeof x), 0);
    tiny_close(&a);
    tiny_close(&b);
}
END_TEST

START_TEST(poolings_take_the_rows_they_say)
{
    struct model_options mo = {.n_ctx = 512};
    float of[4][TINY_N_EMBD];
    struct err err;

    for (unsigned p = 1; p <= 3; p++) {
        struct tiny_model o = {.family = "qwen3", .seed = 5, .pooling = p};
        struct tiny_engine e = tiny_load(&o, &mo, 1, NULL);

        ck_assert_int_eq(model_embed(e.m, ids, 2, NULL, of[p], &err), 0);
        tiny_close(&e);
    }
    for (size_t i = 0; i < TINY_N_EMBD; i++)
        ck_assert_float_eq(of[1][i], (of[2][i] + of[3][i]) / 2);
    ck_assert_int_ne(memcmp(of[2], of[3], sizeof of[2]), 0);
}
END_TEST

START_TEST(what_has_no_embedding_is_refused)
{
    struct tiny_model text = {.family = "qwen3", .seed = 5},
                      embedding = {.family = "qwen3", .seed = 5, .pooling = 3},
                      rank = {.family = "qwen3", .seed = 5, .pooling = 4};
    struct model_options mo = {.n_ctx = 64};
    struct tiny_engine e = tiny_load(&text, &mo, 1, NULL);
    struct gguf_writer w = {0};
    struct model *m = NULL;
    float v[TINY_N_EMBD];
    struct err err;

    ck_assert_int_eq(model_embed(e.m, ids, 3, NULL, v, &err), -ERR_UNSUPPORTED);
    tiny_close(&e);
    e = tiny_load(&embedding, &mo, 1, NULL);
    ck_assert_int_eq(model_embed(e.m, ids, 0, NULL, v, &err), -ERR_INVALID);
    ck_assert_int_eq(model_embed(e.m, ids, 65, NULL, v, &err), -ERR_TOO_LARGE);
    ck_assert_int_eq(model_embed(e.m, (int32_t[]){1, TINY_N_VOCAB}, 2, NULL, v, &err),
                     -ERR_INVALID);
    tiny_close(&e);
    tiny_model_build(&rank, &w);
    ck_assert_int_eq(tiny_open(&w, &m, &err), -ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.text, "reranker"));
}
END_TEST

TCase *tcase_model_embed(void)
{
    TCase *tc = tcase_create("embed");

    tcase_add_checked_fixture(tc, set_up, NULL);
    tcase_add_loop_test(tc, chunks_do_not_change_a_bit_of_an_embedding, 1, 4);
    tcase_add_test(tc, poolings_take_the_rows_they_say);
    tcase_add_test(tc, what_has_no_embedding_is_refused);
    return tc;
}
