/* Small random models; see tiny_model.h. */
#include "tests/support/tiny_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/str.h"
#include "tests/support/noise.h"

#define N_HEADS    4
#define N_KV_HEADS 2
#define HEAD_DIM   64
#define N_FF       512
#define N_FF_EXP   256

const char *const tiny_families[] = {"llama",    "qwen2",    "qwen3", "mixtral",
                                     "qwen2moe", "qwen3moe", NULL};

struct maker {
    const struct tiny_model *o;
    struct gguf_writer *w;
    uint64_t state;
    const char *arch;
    bool moe;
};

static bool is_left_out(const struct maker *k, const char *name)
{
    return k->o->without && strcmp(k->o->without, name) == 0;
}

static void put(struct maker *k, const char *name, const struct format *f, unsigned n_dims,
                const uint64_t *dims, float scale, float mean)
{
    size_t n = 1, bytes;
    float *x;
    void *data;

    if (is_left_out(k, name))
        return;
    for (unsigned i = 0; i < n_dims; i++)
        n *= dims[i];
    if (!f->from_f32 || dims[0] % f->block_elems != 0) {
        fprintf(stderr, "tiny_model: %s cannot be written as %s\n", name, f->name);
        exit(1);
    }
    x = xreallocarray(NULL, n, sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = mean + scale * noise_value(&k->state);
    bytes = n / f->block_elems * f->block_bytes;
    data = xcalloc(1, bytes);
    for (size_t row = 0; row < n / dims[0]; row++)
        f->from_f32(x + row * dims[0], (char *)data + row * format_row_bytes(f, dims[0]), dims[0]);
    gguf_writer_tensor(k->w, name, f->gguf_type, n_dims, dims, data);
    free(data);
    free(x);
}

static void matrix(struct maker *k, int layer, const char *name, const struct format *f,
                   uint64_t in, uint64_t out, uint64_t stack)
{
    uint64_t dims[3] = {in, out, stack};
    char text[64];

    if (layer < 0)
        snprintf(text, sizeof text, "%s.weight", name);
    else
        snprintf(text, sizeof text, "blk.%d.%s.weight", layer, name);
    put(k, text, f, stack ? 3 : 2, dims, 1.7f / sqrtf((float)in), 0.0f);
}

static void vector(struct maker *k, int layer, const char *name, const char *part, uint64_t n,
                   float mean)
{
    char text[64];

    if (layer < 0)
        snprintf(text, sizeof text, "%s.%s", name, part);
    else
        snprintf(text, sizeof text, "blk.%d.%s.%s", layer, name, part);
    put(k, text, format_of(FORMAT_f32), 1, &n, 0.3f, mean);
}

static bool is_family(const struct maker *k, const char *name)
{
    return strcmp(k->o->family, name) == 0;
}

static void put_layer(struct maker *k, int i)
{
    const struct format *f = k->o->fmt ? k->o->fmt : format_of(FORMAT_f16);
    const struct format *f2 = k->o->fmt2 ? k->o->fmt2 : f;
    const struct format *f32 = format_of(FORMAT_f32);
    uint64_t q = N_HEADS * HEAD_DIM, kv = N_KV_HEADS * HEAD_DIM;

    vector(k, i, "attn_norm", "weight", TINY_N_EMBD, 1.0f);
    matrix(k, i, "attn_q", f, TINY_N_EMBD, q, 0);
    matrix(k, i, "attn_k", f, TINY_N_EMBD, kv, 0);
    matrix(k, i, "attn_v", f2, TINY_N_EMBD, kv, 0);
    matrix(k, i, "attn_output", f, q, TINY_N_EMBD, 0);
    if (is_family(k, "qwen2") || is_family(k, "qwen2moe")) {
        vector(k, i, "attn_q", "bias", q, 0.0f);
        vector(k, i, "attn_k", "bias", kv, 0.0f);
        vector(k, i, "attn_v", "bias", kv, 0.0f);
    }
    if (is_family(k, "qwen3") || is_family(k, "qwen3moe")) {
        vector(k, i, "attn_q_norm", "weight", HEAD_DIM, 1.0f);
        vector(k, i, "attn_k_norm", "weight", HEAD_DIM, 1.0f);
    }
    vector(k, i, "ffn_norm", "weight", TINY_N_EMBD, 1.0f);
    if (k->moe) {
        matrix(k, i, "ffn_gate_inp", f32, TINY_N_EMBD, TINY_N_EXPERT, 0);
        matrix(k, i, "ffn_gate_exps", f, TINY_N_EMBD, N_FF_EXP, TINY_N_EXPERT);
        matrix(k, i, "ffn_up_exps", f, TINY_N_EMBD, N_FF_EXP, TINY_N_EXPERT);
        matrix(k, i, "ffn_down_exps", f2, N_FF_EXP, TINY_N_EMBD, TINY_N_EXPERT);
    } else {
        matrix(k, i, "ffn_gate", f, TINY_N_EMBD, N_FF, 0);
        matrix(k, i, "ffn_up", f, TINY_N_EMBD, N_FF, 0);
        matrix(k, i, "ffn_down", f2, N_FF, TINY_N_EMBD, 0);
    }
    if (is_family(k, "qwen2moe")) {
        vector(k, i, "ffn_gate_inp_shexp", "weight", TINY_N_EMBD, 0.0f);
        matrix(k, i, "ffn_gate_shexp", f, TINY_N_EMBD, N_FF, 0);
        matrix(k, i, "ffn_up_shexp", f, TINY_N_EMBD, N_FF, 0);
        matrix(k, i, "ffn_down_shexp", f2, N_FF, TINY_N_EMBD, 0);
    }
}

static void key_u32(struct maker *k, const char *name, uint32_t value)
{
    char text[64];

    if (is_left_out(k, name))
        return;
    snprintf(text, sizeof text, "%s.%s", k->arch, name);
    gguf_writer_u32(k->w, text, value);
}

static void key_f32(struct maker *k, const char *name, float value)
{
    char text[64];

    if (is_left_out(k, name))
        return;
    snprintf(text, sizeof text, "%s.%s", k->arch, name);
    gguf_writer_f32(k->w, text, value);
}

static void put_keys(struct maker *k)
{
    gguf_writer_string(k->w, "general.architecture", k->arch);
    if (!is_left_out(k, "general.name"))
        gguf_writer_string(k->w, "general.name", "tiny");
    key_u32(k, "context_length", k->o->n_ctx ? k->o->n_ctx : 2048);
    key_u32(k, "embedding_length", TINY_N_EMBD);
    key_u32(k, "block_count", k->o->n_layers ? k->o->n_layers : 2);
    key_u32(k, "feed_forward_length", is_family(k, "mixtral") ? N_FF_EXP : N_FF);
    key_u32(k, "attention.head_count", N_HEADS);
    key_u32(k, "attention.head_count_kv", N_KV_HEADS);
    key_u32(k, "attention.key_length", HEAD_DIM);
    key_u32(k, "attention.value_length", HEAD_DIM);
    key_f32(k, "attention.layer_norm_rms_epsilon", 1e-5f);
    key_f32(k, "rope.freq_base", 10000.0f);
    if (k->moe) {
        key_u32(k, "expert_count", TINY_N_EXPERT);
        key_u32(k, "expert_used_count", 2);
    }
    if (k->moe && !is_family(k, "mixtral"))
        key_u32(k, "expert_feed_forward_length", N_FF_EXP);
    if (is_family(k, "qwen2moe"))
        key_u32(k, "expert_shared_feed_forward_length", N_FF);
    if (k->o->no_vocab)
        key_u32(k, "vocab_size", TINY_N_VOCAB);
    if (k->o->pooling)
        key_u32(k, "pooling_type", k->o->pooling);
}

/* GPT-2's bytes as printable characters: those that print stand for themselves, the rest follow from U+0100. */
static void byte_text(unsigned byte, struct str *out)
{
    unsigned shifted = 0;

    for (unsigned b = 0; b <= byte; b++) {
        bool prints = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;

        if (b == byte) {
            str_add_utf8(out, prints ? b : 256 + shifted);
            return;
        }
        shifted += !prints;
    }
}

static const char *const specials[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>",
                                       "</think>"};
static const char *const merges[] = {"t h", "th e", "i n", "e r", "a n", "r e", "o n", "a t"};
static const char template[] = "{% for message in messages %}{{ '<|im_start|>' + message['role'] + "
                               "'\\n' + message['content'] + "
                               "'<|im_end|>' + '\\n' }}{% endfor %}{% if add_generation_prompt "
                               "%}{{ '<|im_start|>assistant\\n' }}"
                               "{% endif %}";

static void put_vocab(struct maker *k)
{
    struct str texts[TINY_N_VOCAB] = {{0}};
    struct view views[TINY_N_VOCAB];
    int32_t types[TINY_N_VOCAB];
    size_t n = 0;

    for (unsigned b = 0; b < 256; b++)
        byte_text(b, &texts[n++]);
    for (size_t i = 0; i < ARRAY_LEN(merges); i++)
        for (const char *p = merges[i]; *p; p++)
            if (*p != ' ')
                str_addc(&texts[n + i], *p);
    n += ARRAY_LEN(merges);
    for (size_t i = 0; i < TINY_N_VOCAB; i++)
        types[i] = i < n ? 1 : 3;
    for (size_t i = 0; i < ARRAY_LEN(specials); i++)
        str_adds(&texts[n++], specials[i]);
    while (texts[TINY_LONG_WORD].len < k->o->word_bytes)
        str_addc(&texts[TINY_LONG_WORD], 'w');
    while (texts[256 + ARRAY_LEN(merges)].len < k->o->bos_bytes)
        str_addc(&texts[256 + ARRAY_LEN(merges)], 'x');
    while (n < TINY_N_VOCAB) {
        str_addf(&texts[n], "<|unused%zu|>", n);
        n++;
    }
    for (size_t i = 0; i < n; i++)
        views[i] = view_of_str(&texts[i]);
    gguf_writer_string(k->w, "tokenizer.ggml.model", "gpt2");
    gguf_writer_string(k->w, "tokenizer.ggml.pre", "gpt-2");
    gguf_writer_views(k->w, "tokenizer.ggml.tokens", views, n);
    gguf_writer_array(k->w, "tokenizer.ggml.token_type", GGUF_I32, types, n);
    gguf_writer_strings(k->w, "tokenizer.ggml.merges", merges, ARRAY_LEN(merges));
    gguf_writer_u32(k->w, "tokenizer.ggml.bos_token_id", 256 + ARRAY_LEN(merges));
    gguf_writer_u32(k->w, "tokenizer.ggml.eos_token_id", 258 + ARRAY_LEN(merges));
    gguf_writer_bool(k->w, "tokenizer.ggml.add_bos_token", false);
    if (!k->o->chat_template || *k->o->chat_template)
        gguf_writer_string(k->w, "tokenizer.chat_template",
                           k->o->chat_template ? k->o->chat_template : template);
    for (size_t i = 0; i < n; i++)
        str_clear(&texts[i]);
}

void tiny_model_build(const struct tiny_model *o, struct gguf_writer *w)
{
    struct maker k = {.o = o, .w = w, .state = o->seed};
    const struct format *f = o->fmt ? o->fmt : format_of(FORMAT_f16);

    k.arch = is_family(&k, "mixtral") ? "llama" : o->family;
    k.moe = is_family(&k, "mixtral") || strstr(o->family, "moe");
    put_keys(&k);
    if (o->no_vocab)
        gguf_writer_string(w, "tokenizer.ggml.model", "none");
    else
        put_vocab(&k);
    matrix(&k, -1, "token_embd", f, TINY_N_EMBD, TINY_N_VOCAB, 0);
    for (int i = 0; i < (int)(o->n_layers ? o->n_layers : 2); i++)
        put_layer(&k, i);
    vector(&k, -1, "output_norm", "weight", TINY_N_EMBD, 1.0f);
    if (!o->tied)
        matrix(&k, -1, "output", f, TINY_N_EMBD, TINY_N_VOCAB, 0);
}

int tiny_model_memfd(const struct tiny_model *o)
{
    struct gguf_writer w = {0};
    int fd;

    tiny_model_build(o, &w);
    fd = gguf_writer_memfd(&w);
    gguf_writer_clear(&w);
    return fd;
}

void tiny_model_save(const struct tiny_model *o, const char *path)
{
    struct gguf_writer w = {0};

    tiny_model_build(o, &w);
    gguf_writer_save(&w, path);
    gguf_writer_clear(&w);
}
