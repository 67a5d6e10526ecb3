/* Numbers of latent attention, indexers and mixtures that cannot be, by what names them. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/model/tiny.h"

TCase *tcase_model_latent(void);

struct number {
    const char *key;
    uint32_t value;
};

#define N_NUMBERS 20

/* A sound file of the kind, but for its tensors. */
static const struct number sound[N_NUMBERS] = {
    {"block_count", 1},
    {"context_length", 64},
    {"embedding_length", 32},
    {"feed_forward_length", 48},
    {"vocab_size", 160},
    {"attention.head_count", 4},
    {"attention.head_count_kv", 1},
    {"attention.key_length", 40},
    {"attention.value_length", 32},
    {"attention.key_length_mla", 24},
    {"attention.value_length_mla", 16},
    {"attention.kv_lora_rank", 32},
    {"attention.q_lora_rank", 48},
    {"attention.indexer.head_count", 4},
    {"attention.indexer.key_length", 64},
    {"attention.indexer.top_k", 24},
    {"rope.dimension_count", 8},
    {"expert_count", 8},
    {"expert_used_count", 2},
    {"expert_feed_forward_length", 16},
};

static const struct {
    struct number wrong;
    const char *says; /* of a sound one: the first tensor that is missed */
} cases[] = {
    {{"attention.head_count_kv", 1}, "token_embd.weight"},
    {{"attention.head_count_kv", 2}, "one KV head"},
    {{"attention.key_length", 41}, "make 40 and 32"},
    {{"attention.value_length", 31}, "make 40 and 32"},
    {{"attention.key_length_mla", 8}, "leaves none"},
    {{"attention.q_lora_rank", 0}, "q_lora_rank"},
    {{"attention.indexer.key_length", 6}, "indexer's head of 6"},
    {{"attention.indexer.top_k", 0}, "attention.indexer.top_k"},
    {{"attention.kv_lora_rank", 5000}, "attention.kv_lora_rank"},
    {{"expert_used_count", 9}, "expert_used_count"},
    {{"expert_count", 0}, "expert"},
    {{"expert_group_count", 3}, "groups"},
    {{"expert_gating_func", 7}, "expert_gating_func"},
    {{"nextn_predict_layers", 1}, "nextn_predict_layers"},
};

START_TEST(a_number_that_cannot_be_is_named)
{
    const struct number *wrong = &cases[_i].wrong;
    const uint64_t dims[1] = {1};
    struct gguf_writer w = {0};
    struct model *m = NULL;
    struct err err = {0};
    char key[96];
    bool known = false;

    gguf_writer_string(&w, "general.architecture", "deepseek32");
    gguf_writer_string(&w, "tokenizer.ggml.model", "none");
    gguf_writer_f32(&w, "deepseek32.attention.layer_norm_rms_epsilon", 1e-5f);
    for (size_t i = 0; i < N_NUMBERS; i++) {
        bool same = strcmp(sound[i].key, wrong->key) == 0;

        snprintf(key, sizeof key, "deepseek32.%s", sound[i].key);
        gguf_writer_u32(&w, key, same ? wrong->value : sound[i].value);
        known |= same;
    }
    snprintf(key, sizeof key, "deepseek32.%s", wrong->key);
    if (!known)
        gguf_writer_u32(&w, key, wrong->value);
    gguf_writer_tensor(&w, "nothing.weight", 0, 1, dims, NULL);
    ck_assert_int_lt(tiny_open(&w, &m, &err), 0);
    ck_assert_msg(strstr(err.text, cases[_i].says) != NULL, "%s %u: \"%s\" does not say \"%s\"",
                  wrong->key, wrong->value, err.text, cases[_i].says);
}
END_TEST

TCase *tcase_model_latent(void)
{
    TCase *tc = tcase_create("latent");

    tcase_add_loop_test(tc, a_number_that_cannot_be_is_named, 0,
                        (int)(sizeof cases / sizeof cases[0]));
    return tc;
}
