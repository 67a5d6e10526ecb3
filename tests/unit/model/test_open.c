/* Opening: what is read, and everything that is refused by name. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "tests/unit/model/tiny.h"

TCase *tcase_model_open(void);

START_TEST(every_family_opens_and_says_what_it_is)
{
    struct tiny_model o = {.family = tiny_families[_i], .seed = 1};
    struct model *m = tiny_must_open(&o);
    struct model_info info;

    model_info(m, &info);
    ck_assert_str_eq(info.arch, strcmp(o.family, "mixtral") == 0 ? "llama" : o.family);
    ck_assert_str_eq(info.name, "tiny");
    ck_assert_str_eq(info.type, "F16");
    ck_assert_uint_eq(info.n_layers, 2);
    ck_assert_uint_eq(info.n_vocab, TINY_N_VOCAB);
    ck_assert_uint_eq(info.n_ctx_train, 2048);
    ck_assert(info.has_tokenizer);
    ck_assert_ptr_nonnull(strstr(info.chat_template, "im_start"));
    ck_assert_uint_eq(info.kv_bytes_per_token, 2 * 2 * (64 + 64) * 2);
    ck_assert(!info.sampling.has_top_k);
    model_close(m);
}
END_TEST

START_TEST(sampling_defaults_of_the_file_are_told)
{
    struct tiny_model o = {.family = "llama", .no_vocab = true};
    struct gguf_writer w = {0};
    struct model *m = NULL;
    struct model_info info;
    struct err err = {0};

    gguf_writer_u32(&w, "general.sampling.top_k", 20);
    gguf_writer_f32(&w, "general.sampling.temp", 0.6f);
    gguf_writer_f32(&w, "general.sampling.top_p", 7.0f); /* no probability: not used */
    tiny_model_build(&o, &w);
    ck_assert_msg(tiny_open(&w, &m, &err) == 0, "%s", err.text);
    model_info(m, &info);
    ck_assert(info.sampling.has_top_k && info.sampling.top_k == 20);
    ck_assert(info.sampling.has_temperature && info.sampling.temperature == 0.6f);
    ck_assert(!info.sampling.has_top_p && !info.sampling.has_min_p);
    ck_assert(!info.has_tokenizer);
    ck_assert_ptr_null(model_tokenizer(m));
    model_close(m);
}
END_TEST

/* A key that is replaced, as an integer or as a float; the error's sentence must hold this. */
static const struct wrong_key {
    const char *family, *key;
    enum gguf_type type;
    double value;
    const char *says;
} wrong_keys[] = {
    {"llama", "block_count", GGUF_U32, 0, "block_count"},
    {"llama", "block_count", GGUF_U32, 3, "blk.2."},
    {"llama", "block_count", GGUF_U32, 100, "100 layers"},
    {"llama", "block_count", GGUF_U32, 100000, "block_count"},
    {"llama", "block_count", GGUF_F32, 2, "block_count"},
    {"llama", "context_length", GGUF_U32, 0, "context_length"},
    {"llama", "embedding_length", GGUF_U32, 0, "embedding_length"},
    {"llama", "embedding_length", GGUF_U32, 4294967295.0, "embedding_length"},
    {"llama", "embedding_length", GGUF_U32, 128, "token_embd.weight"},
    {"llama", "embedding_length", GGUF_I32, -256, "embedding_length"},
    {"llama", "feed_forward_length", GGUF_U32, 511, "ffn_gate"},
    {"llama", "attention.head_count", GGUF_U32, 0, "attention.head_count"},
    {"llama", "attention.head_count", GGUF_U32, 8, "attn_q"},
    {"llama", "attention.head_count", GGUF_BOOL, 1, "attention.head_count"},
    {"llama", "attention.head_count_kv", GGUF_U32, 3, "KV heads"},
    {"llama", "attention.head_count_kv", GGUF_U32, 4294967295.0, "attention.head_count_kv"},
    {"llama", "attention.key_length", GGUF_U32, 32, "attn_q"},
    {"llama", "attention.layer_norm_rms_epsilon", GGUF_F32, -1, "layer_norm_rms_epsilon"},
    {"llama", "attention.layer_norm_rms_epsilon", GGUF_F32, NAN, "layer_norm_rms_epsilon"},
    {"llama", "rope.freq_base", GGUF_F32, 0, "rope.freq_base"},
    {"mixtral", "expert_used_count", GGUF_U32, 0, "expert_used_count"},
    {"mixtral", "expert_used_count", GGUF_U32, 7, "expert_used_count"},
    {"mixtral", "expert_count", GGUF_U32, 0, "expert_used_count"},
    {"mixtral", "expert_count", GGUF_U32, 5, "ffn_gate_inp"},
    {"qwen3moe", "expert_count", GGUF_U32, 0, "expert_used_count"},
};

START_TEST(a_number_that_is_out_of_range_or_does_not_fit_the_tensors_is_named)
{
    const struct wrong_key *k = &wrong_keys[_i];
    const char *prefix = strcmp(k->family, "mixtral") == 0 ? "llama" : k->family;
    struct tiny_model o = {.family = k->family, .without = k->key, .no_vocab = true};
    char *key = xasprintf("%s.%s", prefix, k->key);
    struct gguf_writer w = {0};
    struct model *m = NULL;
    struct err err = {0};
    int r;

    if (k->type == GGUF_F32)
        gguf_writer_f32(&w, key, (float)k->value);
    else
        gguf_writer_int(&w, key, k->type, (int64_t)k->value);
    tiny_model_build(&o, &w);
    r = tiny_open(&w, &m, &err);
    ck_assert_msg(r == -ERR_FORMAT, "%s %g: %d", key, k->value, r);
    ck_assert_msg(strstr(err.text, k->says), "'%s' does not say '%s'", err.text, k->says);
    ck_assert_ptr_null(m);
    free(key);
}
END_TEST

static const struct extra {
    const char *key;
    enum gguf_type type;
    double value;
    const char *text; /* a string instead */
    const char *says;
} extras[] = {
    {"llama.rope.dimension_count", GGUF_U32, 63, NULL, "63"},
    {"llama.rope.dimension_count", GGUF_U32, 66, NULL, "within a head"},
    {"llama.rope.dimension_count", GGUF_U32, 0, NULL, "rope.dimension_count"},
    {"llama.rope.scaling.type", GGUF_STRING, 0, "ntk", "'ntk'"},
    {"llama.rope.scaling.type", GGUF_STRING, 0, "longrope", "'longrope'"},
    {"llama.rope.scaling.factor", GGUF_F32, 0, NULL, "rope.scaling.factor"},
    {"llama.rope.scaling.yarn_attn_factor", GGUF_F32, 1.5, NULL, "rope.scaling.attn_factor"},
    {"llama.expert_used_count", GGUF_U32, 2, NULL, "no experts"},
};

START_TEST(an_additional_key_with_a_wrong_value_is_named)
{
    const struct extra *x = &extras[_i];
    struct tiny_model o = {.family = "llama", .no_vocab = true};
    struct gguf_writer w = {0};
    struct model *m = NULL;
    struct err err = {0};

    if (x->text)
        gguf_writer_string(&w, x->key, x->text);
    else if (x->type == GGUF_F32)
        gguf_writer_f32(&w, x->key, (float)x->value);
    else
        gguf_writer_u32(&w, x->key, (uint32_t)x->value);
    tiny_model_build(&o, &w);
    ck_assert_int_lt(tiny_open(&w, &m, &err), 0);
    ck_assert_msg(strstr(err.text, x->says), "'%s' does not say '%s'", err.text, x->says);
}
END_TEST

static const char *const needed[] = {
    "context_length",
    "embedding_length",
    "block_count",
    "feed_forward_length",
    "attention.head_count",
    "attention.layer_norm_rms_epsilon",
    "vocab_size",
    "token_embd.weight",
    "output_norm.weight",
    "blk.0.attn_norm.weight",
    "blk.1.attn_q.weight",
    "blk.0.attn_k.weight",
    "blk.1.attn_v.weight",
    "blk.0.attn_output.weight",
    "blk.1.ffn_norm.weight",
    "blk.1.ffn_gate.weight",
    "blk.0.ffn_up.weight",
    "blk.1.ffn_down.weight",
};

START_TEST(what_is_needed_and_not_there_is_named)
{
    struct tiny_model o = {.family = "llama", .without = needed[_i], .no_vocab = true};
    struct gguf_writer w = {0};
    struct model *m = NULL;
    struct err err = {0};

    tiny_model_build(&o, &w);
    ck_assert_int_eq(tiny_open(&w, &m, &err), -ERR_FORMAT);
    ck_assert_msg(strstr(err.text, needed[_i]), "'%s' does not name %s", err.text, needed[_i]);
}
END_TEST

START_TEST(an_unknown_architecture_is_refused_with_the_ones_of_names_like_it)
{
    struct gguf_writer w = {0};
    struct model *m = NULL;
    struct err err = {0};

    gguf_writer_string(&w, "general.architecture", "llama9000");
    gguf_writer_tensor(&w, "x", 0, 1, (uint64_t[]){4}, NULL);
    ck_assert_int_eq(tiny_open(&w, &m, &err), -ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.text, "'llama9000'"));
    ck_assert_ptr_nonnull(strstr(err.text, ": llama, llama4"));
    ck_assert_ptr_null(strstr(err.text, "qwen3moe"));
}
END_TEST

START_TEST(tensors_of_types_that_hold_no_weights_are_refused)
{
    static const struct {
        const char *name;
        uint32_t type;
    } wrong[] = {{"output.weight", 26}, {"output.weight", 28}, {"output_norm.weight", 1}};
    struct tiny_model o = {.family = "llama", .no_vocab = true, .without = wrong[_i].name};
    struct gguf_writer w = {0};
    struct model *m = NULL;
    struct err err = {0};
    bool is_norm = wrong[_i].type == 1;

    tiny_model_build(&o, &w);
    gguf_writer_tensor(&w, wrong[_i].name, wrong[_i].type, is_norm ? 1 : 2,
                       (uint64_t[]){TINY_N_EMBD, TINY_N_VOCAB}, NULL);
    ck_assert_int_eq(tiny_open(&w, &m, &err), -ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.text, wrong[_i].name));
}
END_TEST

static size_t n_unused;

static void note_unused(void *arg, const struct gguf_tensor *t)
{
    (void)arg;
    ck_assert(view_is(t->name, "blk.7.extra.weight"));
    n_unused++;
}

START_TEST(tensors_that_no_table_names_are_told_as_unused)
{
    struct tiny_model o = {.family = "qwen3", .no_vocab = true};
    struct gguf_writer w = {0};
    struct model *m = NULL;
    struct err err = {0};

    gguf_writer_tensor(&w, "blk.7.extra.weight", 0, 1, (uint64_t[]){4}, NULL);
    tiny_model_build(&o, &w);
    ck_assert_msg(tiny_open(&w, &m, &err) == 0, "%s", err.text);
    n_unused = 0;
    model_unused_tensors(m, note_unused, NULL);
    ck_assert_uint_eq(n_unused, 1);
    model_close(m);
}
END_TEST

static const uint32_t alike[] = {4, 4, 4}, unlike[] = {4, 2}, dims[] = {16, 8};
static const struct {
    const char *key;
    const uint32_t *values;
    size_t n;
    int result;
} arrays[] = {{"attention.head_count", alike, 2, 0},
              {"attention.head_count", alike, 1, -ERR_FORMAT},
              {"attention.head_count", alike, 3, -ERR_FORMAT},
              {"attention.head_count", unlike, 2, -ERR_FORMAT}, /* layer 1 has tensors for 4 */
              {"attention.key_length", dims, 2, -ERR_UNSUPPORTED}};

START_TEST(one_number_a_layer_is_taken_where_layers_may_differ_or_all_are_alike)
{
    struct tiny_model o = {.family = "llama", .no_vocab = true, .without = arrays[_i].key};
    struct gguf_writer w = {0};
    struct model *m = NULL;
    struct err err = {0};
    char key[64];

    snprintf(key, sizeof key, "llama.%s", arrays[_i].key);
    gguf_writer_array(&w, key, GGUF_U32, arrays[_i].values, arrays[_i].n);
    tiny_model_build(&o, &w);
    ck_assert_int_eq(tiny_open(&w, &m, &err), arrays[_i].result);
    model_close(m);
}
END_TEST

TCase *tcase_model_open(void)
{
    TCase *tc = tcase_create("open");

    tcase_add_loop_test(tc, every_family_opens_and_says_what_it_is, 0, 6);
    tcase_add_test(tc, sampling_defaults_of_the_file_are_told);
    tcase_add_loop_test(tc, a_number_that_is_out_of_range_or_does_not_fit_the_tensors_is_named, 0,
                        ARRAY_LEN(wrong_keys));
    tcase_add_loop_test(tc, an_additional_key_with_a_wrong_value_is_named, 0, ARRAY_LEN(extras));
    tcase_add_loop_test(tc, what_is_needed_and_not_there_is_named, 0, ARRAY_LEN(needed));
    tcase_add_test(tc, an_unknown_architecture_is_refused_with_the_ones_of_names_like_it);
    tcase_add_loop_test(tc, tensors_of_types_that_hold_no_weights_are_refused, 0, 3);
    tcase_add_test(tc, tensors_that_no_table_names_are_told_as_unused);
    tcase_add_loop_test(tc, one_number_a_layer_is_taken_where_layers_may_differ_or_all_are_alike, 0,
                        ARRAY_LEN(arrays));
    return tc;
}
