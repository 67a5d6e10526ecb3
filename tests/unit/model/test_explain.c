/* What show tells of a file: figures that a hand can check, and those of the ledger. */
#include <check.h>
#include <string.h>

#include "common/alloc.h"
#include "common/str.h"
#include "tests/support/family_model.h"
#include "tests/unit/model/tiny.h"

TCase *tcase_model_explain(void);

static struct model *open_file(const char *family, const char *variant)
{
    const struct family_file o = {.family = family, .variant = variant};
    struct gguf_writer w = {0};
    struct model *m = NULL;
    struct err err = {0};
    char name[96];

    family_file_build(&o, &w, name);
    ck_assert_msg(tiny_open(&w, &m, &err) == 0, "%s: %s", family, err.text);
    return m;
}

static void add_kind(void *arg, int from, int to, const char *kind)
{
    str_addf(arg, "%d-%d %s; ", from, to, kind);
}

/* With f16 caches, 2 KV heads of 16 unless said otherwise: 128 bytes a layer and token. */
static const struct {
    const char *family, *variant;
    size_t per_token, fixed, n_experts, n_used;
    const char *layers;
} figures[] = {
    {"llama", NULL, 4 * 128, 0, 0, 0, "0-3 attention, dense; "},
    {"llama", "experts", 4 * 128, 0, 6, 2, "0-3 attention, experts; "},
    {"llama", "mha", 4 * 4 * (24 + 24) * 2, 0, 0, 0, "0-3 attention, dense; "},
    {"cohere2", NULL, 128, 3 * 16 * 128, 0, 0,
     "0-2 attention (window 16), dense; 3-3 attention, dense; "},
    {"gpt_oss", NULL, 2 * 256, 2 * 16 * 256, 6, 2,
     "0-0 attention (window 16), experts; 1-1 attention, experts; "
     "2-2 attention (window 16), experts; 3-3 attention, experts; "},
    /* The last two of six layers have no keys and values of their own; heads of 32, of 16 in windows. */
    {"gemma4", NULL, 256, 3 * 16 * 128, 0, 0,
     "0-2 attention (window 16), dense; 3-3 attention, dense; "
     "4-4 attention (window 16), dense; 5-5 attention, dense; "},
    /* The last five of 25 layers read the keys and values of two earlier ones. */
    {"gemma3n", "shared", 4 * 256, 16 * 16 * 256, 0, 0,
     "0-3 attention (window 16), dense; 4-4 attention, dense; "
     "5-8 attention (window 16), dense; 9-9 attention, dense; "
     "10-13 attention (window 16), dense; 14-14 attention, dense; "
     "15-18 attention (window 16), dense; 19-19 attention, dense; "
     "20-23 attention (window 16), dense; 24-24 attention, dense; "},
    {"gemma4", "experts", 256, 2 * 16 * 128, 8, 2,
     "0-1 attention (window 16), experts, dense; 2-2 attention, experts, dense; "},
    /* A latent of 32 and a rotated key of 8; expanded 4 heads of 24 and 16; with keys of an indexer. */
    {"deepseek2", NULL, 4 * 40 * 2, 0, 8, 2, "0-0 attention, dense; 1-3 attention, experts; "},
    {"deepseek2", "lite", 27 * 4 * (24 + 16) * 2, 0, 4, 2,
     "0-0 attention, dense; 1-26 attention, experts; "},
    {"deepseek32", NULL, 4 * (40 + 64) * 2, 0, 8, 2,
     "0-0 indexer, attention to chosen positions, dense; "
     "1-3 indexer, attention to chosen positions, experts; "},
    /* Three inputs of a convolution and a state, in f32. */
    {"mamba", NULL, 0, 4 * (3 * 128 + 16 * 128) * 4, 0, 0, "0-3 state space; "},
    {"mamba2", NULL, 0, 4 * (3 * (128 + 2 * 2 * 16) + 8 * 16 * 16) * 4, 0, 0, "0-3 state space; "},
    {"qwen35", NULL, 256, 3 * (3 * (2 * 2 * 16 + 64) + 4 * 16 * 16) * 4, 0, 0,
     "0-2 delta rule, dense; 3-3 attention, dense; "},
    {"kimi_linear", NULL, 40 * 2, 3 * (3 * 3 * 64 + 4 * 16 * 16) * 4, 8, 2,
     "0-0 delta rule, dense; 1-2 delta rule, experts; 3-3 attention, experts; "},
    {"nemotron_h", NULL, 256, 2 * (3 * (128 + 2 * 2 * 16) + 8 * 16 * 16) * 4, 0, 0,
     "0-0 state space; 1-1 dense; 2-2 attention; 3-3 state space; "},
    {"falcon_h1", NULL, 4 * 256, 4 * (3 * (128 + 2 * 2 * 16) + 8 * 16 * 16) * 4, 0, 0,
     "0-3 attention, state space, dense; "},
    {"lfm2", NULL, 128, 3 * 2 * 64 * 4, 0, 0,
     "0-1 short convolution, dense; 2-2 attention, dense; 3-3 short convolution, dense; "},
};

START_TEST(show_tells_layers_experts_and_state)
{
    struct model *m = open_file(figures[_i].family, figures[_i].variant);
    struct model_info info;
    struct str kinds = {0};

    model_info(m, &info);
    model_layer_kinds(m, add_kind, &kinds);
    ck_assert_msg(info.kv_bytes_per_token == figures[_i].per_token, "%s: %zu a token",
                  figures[_i].family, info.kv_bytes_per_token);
    ck_assert_msg(info.state_bytes == figures[_i].fixed, "%s: %zu fixed", figures[_i].family,
                  info.state_bytes);
    ck_assert_uint_eq(info.n_experts, figures[_i].n_experts);
    ck_assert_uint_eq(info.n_experts_used, figures[_i].n_used);
    ck_assert_str_eq(str_text(&kinds), figures[_i].layers);
    str_clear(&kinds);
    model_close(m);
}
END_TEST

static struct model_plan plan_at(struct model *m, const struct cpu_backend *cpu, size_t n_ctx)
{
    const struct model_options mo = {.n_ctx = n_ctx, .n_batch = 64, .n_out = 1};
    struct model_plan p;
    struct err err = {0};

    ck_assert_msg(model_plan(m, &mo, cpu->ops, cpu->be, SIZE_MAX / 2, &p, &err) == 0, "%s",
                  err.text);
    return p;
}

/* What a longer context adds to the plan is what show says of a token, and the id. */
START_TEST(a_token_takes_of_the_ledger_what_show_says)
{
    struct cpu_backend cpu = cpu_backend_open(1, NULL);
    struct model *m = open_file(family_names[_i], NULL);
    struct model_info info;
    size_t few = 2048, many = 4096, grown, want;

    model_info(m, &info);
    /* Windows of 8192, as llama4's, still fill at such contexts. */
    if (info.n_ctx_train >= many && strcmp(family_names[_i], "llama4") != 0) {
        grown =
            plan_at(m, &cpu, many).account[ACCOUNT_KV] - plan_at(m, &cpu, few).account[ACCOUNT_KV];
        want = (many - few) * (info.kv_bytes_per_token + sizeof(int32_t));
        ck_assert_msg(grown + 8192 > want && grown < want + 8192, "%s: %zu, not %zu",
                      family_names[_i], grown, want);
    }
    model_close(m);
    cpu_backend_close(&cpu);
}
END_TEST

TCase *tcase_model_explain(void)
{
    TCase *tc = tcase_create("explain");
    int n = 0;

    while (family_names[n])
        n++;
    tcase_add_loop_test(tc, show_tells_layers_experts_and_state, 0, (int)ARRAY_LEN(figures));
    tcase_add_loop_test(tc, a_token_takes_of_the_ledger_what_show_says, 0, n);
    return tc;
}
