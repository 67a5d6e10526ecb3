/* The presets, keys and tensors of synthetic models; see mkmodel.h. */
#include "tests/support/mkmodel.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/str.h"

const struct mkmodel_preset mkmodel_presets[] = {
    {"smol-135m", "llama", 30, 576, 1536, 9, 3, 64, 49152, 0, 0, 0},
    {"tinyllama-1.1b", "llama", 22, 2048, 5632, 32, 4, 64, 32000, 0, 0, 0},
    {"llama-8b", "llama", 32, 4096, 14336, 32, 8, 128, 128256, 0, 0, 0},
    {"llama-70b", "llama", 80, 8192, 28672, 64, 8, 128, 128256, 0, 0, 0},
    {"qwen3-0.6b", "qwen3", 28, 1024, 3072, 16, 8, 128, 151936, 0, 0, 0},
    {"qwen3-4b", "qwen3", 36, 2560, 9728, 32, 8, 128, 151936, 0, 0, 0},
    {"qwen3moe-30b-a3b", "qwen3moe", 48, 2048, 6144, 32, 4, 128, 151936, 128, 8, 768},
    {"qwen3moe-tiny", "qwen3moe", 8, 512, 1024, 8, 2, 64, 4096, 64, 8, 256},
    {"qwen35moe-35b-a3b", "qwen35moe", 40, 2048, 512, 16, 2, 256, 248320, 256, 8, 512},
    {"gpt-oss-20b", "gpt-oss", 24, 2880, 2880, 64, 8, 64, 201088, 32, 4, 2880},
    {0},
};

#define PLAIN(NAME, number, fmt)                                                                   \
    {                                                                                              \
        NAME, number, FORMAT_##fmt, FORMAT_##fmt, FORMAT_##fmt                                     \
    }
#define MIXED(NAME, number, base, down, out)                                                       \
    {                                                                                              \
        NAME, number, FORMAT_##base, FORMAT_##down, FORMAT_##out                                   \
    }

/* The numbers are general.file_type's. */
const struct mkmodel_type mkmodel_types[] = {
    PLAIN("F32", 0, f32),
    PLAIN("F16", 1, f16),
    PLAIN("Q4_0", 2, q4_0),
    PLAIN("Q4_1", 3, q4_1),
    PLAIN("Q8_0", 7, q8_0),
    PLAIN("Q5_0", 8, q5_0),
    PLAIN("Q5_1", 9, q5_1),
    PLAIN("Q2_K", 10, q2_k),
    MIXED("Q3_K_M", 12, q3_k, q4_k, q6_k),
    MIXED("Q4_K_S", 14, q4_k, q4_k, q6_k),
    MIXED("Q4_K_M", 15, q4_k, q6_k, q6_k),
    MIXED("Q5_K_M", 17, q5_k, q6_k, q6_k),
    PLAIN("Q6_K", 18, q6_k),
    PLAIN("IQ2_XXS", 19, iq2_xxs),
    PLAIN("IQ2_XS", 20, iq2_xs),
    PLAIN("IQ3_XXS", 23, iq3_xxs),
    PLAIN("IQ1_S", 24, iq1_s),
    PLAIN("IQ4_NL", 25, iq4_nl),
    PLAIN("IQ3_S", 26, iq3_s),
    MIXED("IQ2_M", 29, iq2_s, iq3_s, q5_k),
    PLAIN("IQ4_XS", 30, iq4_xs),
    PLAIN("IQ1_M", 31, iq1_m),
    PLAIN("BF16", 32, bf16),
    PLAIN("TQ1_0", 36, tq1_0),
    PLAIN("TQ2_0", 37, tq2_0),
    PLAIN("MXFP4", 38, mxfp4),
    {0},
};

const struct mkmodel_preset *mkmodel_preset_of(const char *name)
{
    for (const struct mkmodel_preset *p = mkmodel_presets; p->name; p++)
        if (strcmp(p->name, name) == 0)
            return p;
    return NULL;
}

const struct mkmodel_type *mkmodel_type_of(const char *name)
{
    for (const struct mkmodel_type *t = mkmodel_types; t->name; t++)
        if (strcmp(t->name, name) == 0)
            return t;
    return NULL;
}

struct maker {
    const struct mkmodel_preset *o;
    const struct mkmodel_type *type;
    struct mkmodel_plan *plan;
    int layer; /* −1: outside the layers */
};

/* -- keys ----------------------------------------------------------------------------- */

static const char *key(const struct maker *k, const char *name)
{
    static char text[96];

    snprintf(text, sizeof text, "%s.%s", k->o->arch, name);
    return text;
}

static void key_u32(struct maker *k, const char *name, uint32_t value)
{
    gguf_writer_u32(&k->plan->w, key(k, name), value);
}

static void key_f32(struct maker *k, const char *name, float value)
{
    gguf_writer_f32(&k->plan->w, key(k, name), value);
}

static bool is_arch(const struct maker *k, const char *arch)
{
    return strcmp(k->o->arch, arch) == 0;
}

/* Gated delta net of qwen3next and its children: heads of keys and values, width of a head, convolution. */
enum { SSM_K_HEADS = 16, SSM_V_HEADS = 32, SSM_STATE = 128, SSM_CONV = 4, SSM_INTERVAL = 4 };

static void put_family_keys(struct maker *k)
{
    static const int32_t sections[] = {11, 11, 10, 0};

    if (is_arch(k, "qwen35moe")) {
        key_u32(k, "full_attention_interval", SSM_INTERVAL);
        key_u32(k, "expert_shared_feed_forward_length", k->o->n_ff_exp);
        key_u32(k, "rope.dimension_count", k->o->head_dim / 4);
        gguf_writer_array(&k->plan->w, key(k, "rope.dimension_sections"), GGUF_I32, sections,
                          ARRAY_LEN(sections));
        key_u32(k, "ssm.conv_kernel", SSM_CONV);
        key_u32(k, "ssm.inner_size", SSM_V_HEADS * SSM_STATE);
        key_u32(k, "ssm.state_size", SSM_STATE);
        key_u32(k, "ssm.time_step_rank", SSM_V_HEADS);
        key_u32(k, "ssm.group_count", SSM_K_HEADS);
    }
    if (is_arch(k, "gpt-oss")) {
        key_u32(k, "attention.sliding_window", 128);
        key_f32(k, "rope.scaling.factor", 32.0f);
        gguf_writer_string(&k->plan->w, key(k, "rope.scaling.type"), "yarn");
        key_u32(k, "rope.scaling.original_context_length", 4096);
    }
}

static void put_keys(struct maker *k, unsigned n_ctx)
{
    const struct mkmodel_preset *o = k->o;
    struct gguf_writer *w = &k->plan->w;
    char name[128];

    snprintf(name, sizeof name, "synthetic %s %s", o->name, k->type->name);
    gguf_writer_string(w, "general.architecture", o->arch);
    gguf_writer_string(w, "general.name", name);
    gguf_writer_u32(w, "general.file_type", k->type->file_type);
    gguf_writer_u32(w, "general.quantization_version", 2);
    key_u32(k, "block_count", o->n_layers);
    key_u32(k, "context_length", n_ctx);
    key_u32(k, "embedding_length", o->n_embd);
    key_u32(k, "feed_forward_length", o->n_ff);
    key_u32(k, "attention.head_count", o->n_heads);
    key_u32(k, "attention.head_count_kv", o->n_kv_heads);
    key_u32(k, "attention.key_length", o->head_dim);
    key_u32(k, "attention.value_length", o->head_dim);
    key_f32(k, "attention.layer_norm_rms_epsilon", 1e-6f);
    key_f32(k, "rope.freq_base", 1e6f);
    key_u32(k, "vocab_size", o->n_vocab);
    if (o->n_expert) {
        key_u32(k, "expert_count", o->n_expert);
        key_u32(k, "expert_used_count", o->n_used);
        key_u32(k, "expert_feed_forward_length", o->n_ff_exp);
    }
    if (is_arch(k, "llama"))
        key_u32(k, "rope.dimension_count", o->head_dim);
}

/* -- vocabulary ------------------------------------------------------------------------ */

static const char *const specials[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>",
                                       "</think>"};
static const char *const merges[] = {"h e"};
static const char template[] =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

/* GPT-2's alphabet: bytes that print stand for themselves, the rest follow in order from U+0100. */
static void put_bytes(struct str *texts, size_t n)
{
    unsigned shifted = 0;

    for (unsigned b = 0; b < 256 && b < n; b++) {
        bool prints = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;

        str_add_utf8(&texts[b], prints ? b : 256 + shifted);
        shifted += !prints;
    }
}

static void put_vocab(struct maker *k)
{
    size_t n = k->o->n_vocab, first_filler = 256 + ARRAY_LEN(specials);
    struct gguf_writer *w = &k->plan->w;
    struct str *texts = XNEW_ARRAY(struct str, n);
    struct view *views = XNEW_ARRAY(struct view, n);
    int32_t *types = XNEW_ARRAY(int32_t, n);

    put_bytes(texts, n);
    for (size_t i = 256; i < n && i < first_filler; i++)
        str_adds(&texts[i], specials[i - 256]);
    for (size_t i = first_filler; i < n; i++)
        str_addf(&texts[i], "<|unused_%zu|>", i - first_filler);
    for (size_t i = 0; i < n; i++) {
        types[i] = i < 256 ? 1 : i < first_filler ? 3 : 5; /* normal, control, unused */
        views[i] = view_of_str(&texts[i]);
    }
    gguf_writer_string(w, "tokenizer.ggml.model", "gpt2");
    gguf_writer_string(w, "tokenizer.ggml.pre", is_arch(k, "llama") ? "llama-bpe" : "qwen2");
    gguf_writer_views(w, "tokenizer.ggml.tokens", views, n);
    gguf_writer_array(w, "tokenizer.ggml.token_type", GGUF_I32, types, n);
    gguf_writer_strings(w, "tokenizer.ggml.merges", merges, ARRAY_LEN(merges));
    gguf_writer_u32(w, "tokenizer.ggml.bos_token_id", 256);
    gguf_writer_u32(w, "tokenizer.ggml.eos_token_id", 258);
    gguf_writer_bool(w, "tokenizer.ggml.add_bos_token", false);
    gguf_writer_string(w, "tokenizer.chat_template", template);
    for (size_t i = 0; i < n; i++)
        str_clear(&texts[i]);
    free(types);
    free(views);
    free(texts);
}

/* -- tensors --------------------------------------------------------------------------- */

static const struct mkmodel_fill noise = {.kind = MKMODEL_NOISE};
static const struct mkmodel_fill ones = {.kind = MKMODEL_ONES};

static struct mkmodel_fill uniform(float lo, float hi)
{
    return (struct mkmodel_fill){.kind = MKMODEL_UNIFORM, .lo = lo, .hi = hi};
}

/* stack 0: a matrix; out 0: a vector.  A row that is no multiple of the type's block takes a smaller block. */
static void put(struct maker *k, const char *name, enum format_id id, struct mkmodel_fill fill,
                uint64_t in, uint64_t out, uint64_t stack)
{
    struct mkmodel_plan *p = k->plan;
    const struct format *f = format_of(id);
    uint64_t dims[] = {in, out, stack};
    char text[80];

    if (in % f->block_elems != 0)
        f = format_of(in % 32 == 0 ? FORMAT_q8_0 : FORMAT_f16);
    if (k->layer < 0)
        snprintf(text, sizeof text, "%s", name);
    else
        snprintf(text, sizeof text, "blk.%d.%s", k->layer, name);
    gguf_writer_declare(&p->w, text, f->gguf_type, stack ? 3 : out ? 2 : 1, dims);
    ARRAY_GROW(p->fills, p->w.n_tensors, p->cap_fills);
    p->fills[p->w.n_tensors - 1] = fill;
}

static void matrix(struct maker *k, const char *name, enum format_id id, uint64_t in, uint64_t out)
{
    put(k, name, id, noise, in, out, 0);
}

static void vector(struct maker *k, const char *name, struct mkmodel_fill fill, uint64_t n)
{
    put(k, name, FORMAT_f32, fill, n, 0, 0);
}

static void put_experts(struct maker *k)
{
    const struct mkmodel_preset *o = k->o;

    matrix(k, "ffn_gate_inp.weight", FORMAT_f32, o->n_embd, o->n_expert);
    put(k, "ffn_gate_exps.weight", k->type->base, noise, o->n_embd, o->n_ff_exp, o->n_expert);
    put(k, "ffn_up_exps.weight", k->type->base, noise, o->n_embd, o->n_ff_exp, o->n_expert);
    put(k, "ffn_down_exps.weight", k->type->down, noise, o->n_ff_exp, o->n_embd, o->n_expert);
}

/* gated: the query has a gate of its own size beside it. */
static void put_attention(struct maker *k, bool norms, bool gated)
{
    const struct mkmodel_preset *o = k->o;
    uint64_t q = (uint64_t)o->n_heads * o->head_dim, kv = (uint64_t)o->n_kv_heads * o->head_dim;

    matrix(k, "attn_q.weight", k->type->base, o->n_embd, gated ? 2 * q : q);
    matrix(k, "attn_k.weight", k->type->base, o->n_embd, kv);
    matrix(k, "attn_v.weight", k->type->down, o->n_embd, kv);
    matrix(k, "attn_output.weight", k->type->base, q, o->n_embd);
    if (norms) {
        vector(k, "attn_q_norm.weight", ones, o->head_dim);
        vector(k, "attn_k_norm.weight", ones, o->head_dim);
    }
}

static void put_delta_net(struct maker *k)
{
    uint64_t d = k->o->n_embd, inner = SSM_V_HEADS * SSM_STATE;
    uint64_t conv = 2 * SSM_K_HEADS * SSM_STATE + inner;

    matrix(k, "attn_qkv.weight", k->type->base, d, conv);
    matrix(k, "attn_gate.weight", k->type->base, d, inner);
    put(k, "ssm_conv1d.weight", FORMAT_f32, uniform(-0.5f, 0.5f), SSM_CONV, conv, 0);
    vector(k, "ssm_dt.bias", uniform(-1, 1), SSM_V_HEADS);
    vector(k, "ssm_a", uniform(-4, -0.1f), SSM_V_HEADS);
    matrix(k, "ssm_beta.weight", FORMAT_f32, d, SSM_V_HEADS);
    matrix(k, "ssm_alpha.weight", FORMAT_f32, d, SSM_V_HEADS);
    vector(k, "ssm_norm.weight", ones, SSM_STATE);
    matrix(k, "ssm_out.weight", k->type->base, inner, d);
}

static void put_qwen35moe(struct maker *k)
{
    const struct mkmodel_preset *o = k->o;

    vector(k, "post_attention_norm.weight", ones, o->n_embd);
    if ((k->layer + 1) % SSM_INTERVAL == 0)
        put_attention(k, true, true);
    else
        put_delta_net(k);
    put_experts(k);
    vector(k, "ffn_gate_inp_shexp.weight", noise, o->n_embd);
    matrix(k, "ffn_gate_shexp.weight", k->type->base, o->n_embd, o->n_ff_exp);
    matrix(k, "ffn_up_shexp.weight", k->type->base, o->n_embd, o->n_ff_exp);
    matrix(k, "ffn_down_shexp.weight", k->type->down, o->n_ff_exp, o->n_embd);
}

static void put_gpt_oss(struct maker *k)
{
    const struct mkmodel_preset *o = k->o;
    uint64_t kv = (uint64_t)o->n_kv_heads * o->head_dim;

    put_attention(k, false, false);
    vector(k, "post_attention_norm.weight", ones, o->n_embd);
    vector(k, "attn_q.bias", noise, (uint64_t)o->n_heads * o->head_dim);
    vector(k, "attn_k.bias", noise, kv);
    vector(k, "attn_v.bias", noise, kv);
    vector(k, "attn_output.bias", noise, o->n_embd);
    vector(k, "attn_sinks.weight", uniform(-1, 1), o->n_heads);
    put_experts(k);
    vector(k, "ffn_gate_inp.bias", noise, o->n_expert);
    matrix(k, "ffn_gate_exps.bias", FORMAT_f32, o->n_ff_exp, o->n_expert);
    matrix(k, "ffn_up_exps.bias", FORMAT_f32, o->n_ff_exp, o->n_expert);
    matrix(k, "ffn_down_exps.bias", FORMAT_f32, o->n_embd, o->n_expert);
}

static void put_layer(struct maker *k)
{
    const struct mkmodel_preset *o = k->o;

    vector(k, "attn_norm.weight", ones, o->n_embd);
    if (is_arch(k, "qwen35moe")) {
        put_qwen35moe(k);
        return;
    }
    if (is_arch(k, "gpt-oss")) {
        put_gpt_oss(k);
        return;
    }
    put_attention(k, strncmp(o->arch, "qwen3", 5) == 0, false);
    vector(k, "ffn_norm.weight", ones, o->n_embd);
    if (o->n_expert) {
        put_experts(k);
        return;
    }
    matrix(k, "ffn_gate.weight", k->type->base, o->n_embd, o->n_ff);
    matrix(k, "ffn_up.weight", k->type->base, o->n_embd, o->n_ff);
    matrix(k, "ffn_down.weight", k->type->down, o->n_ff, o->n_embd);
}

void mkmodel_plan(const struct mkmodel *o, struct mkmodel_plan *ret)
{
    struct maker k = {.o = &o->preset, .type = o->type, .plan = ret, .layer = -1};

    *ret = (struct mkmodel_plan){0};
    put_keys(&k, o->n_ctx ? o->n_ctx : 40960);
    put_vocab(&k);
    put_family_keys(&k);
    matrix(&k, "token_embd.weight", o->type->base, o->preset.n_embd, o->preset.n_vocab);
    vector(&k, "output_norm.weight", ones, o->preset.n_embd);
    if (o->preset.n_embd >
        1024) /* as in the real ones: small models tie the head to the embedding */
        matrix(&k, "output.weight", o->type->out, o->preset.n_embd, o->preset.n_vocab);
    for (k.layer = 0; k.layer < (int)o->preset.n_layers; k.layer++)
        put_layer(&k);
}

void mkmodel_plan_clear(struct mkmodel_plan *p)
{
    gguf_writer_clear(&p->w);
    free(p->fills);
    *p = (struct mkmodel_plan){0};
}
