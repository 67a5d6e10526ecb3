/*
 * make_parrot PATH TEMPLATE ANSWER [CONTROL...]: writes a model that answers every prompt with the bytes of the file
 * ANSWER and then ends; TEMPLATE is the file of its chat template.  Each CONTROL is a control token where it stands
 * first in the answer; everything else comes in pieces of three bytes, or more where no two may be the same.
 *
 * How: the layers add nothing, each token of the answer has a direction of its own as its embedding, and the head
 * sends that direction to the next one.  Tokens of prompts share the direction that leads to the first.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/file.h"
#include "common/str.h"
#include "tests/support/gguf_writer.h"

#define N_EMBD   512
#define N_BYTES  256
#define IM_START 256
#define IM_END   257
#define FIRST    258
#define SURE     10.0f /* so much more likely than all else is the next token */

struct parrot {
    struct str *texts; /* of tokens, in GPT-2's alphabet where they are normal */
    int32_t *types;
    size_t n, cap_texts, cap_types;
};

static void add_token(struct parrot *p, struct view text, int32_t type)
{
    ARRAY_GROW(p->texts, p->n + 1, p->cap_texts);
    ARRAY_GROW(p->types, p->n + 1, p->cap_types);
    p->texts[p->n] = (struct str){0};
    p->types[p->n] = type;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char b = (unsigned char)text.p[i];
        unsigned shifted = 0;
        bool prints = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;

        for (unsigned c = 0; c < b; c++)
            shifted += !((c >= 33 && c <= 126) || (c >= 161 && c <= 172) || c >= 174);
        if (type == 1)
            str_add_utf8(&p->texts[p->n], prints ? b : 256 + shifted);
        else
            str_addc(&p->texts[p->n], text.p[i]);
    }
    p->n++;
}

static bool is_there(const struct parrot *p, const struct str *text)
{
    for (size_t i = 0; i < p->n; i++)
        if (view_eq(view_of_str(&p->texts[i]), view_of_str(text)))
            return true;
    return false;
}

/* Takes the token back and returns false when its text is there already. */
static bool add_new(struct parrot *p, struct view text, int32_t type)
{
    add_token(p, text, type);
    p->n--;
    if (is_there(p, &p->texts[p->n])) {
        str_clear(&p->texts[p->n]);
        return false;
    }
    p->n++;
    return true;
}

/* Where the first of the control tokens stands that are not used yet; the end if none does. */
static size_t next_control(struct view text, char *const *controls, size_t n, const bool *used,
                           size_t *ret_which)
{
    size_t first = text.len;

    for (size_t i = 0; i < n; i++) {
        ptrdiff_t at = used[i] ? -1 : view_find(text, view_of(controls[i]), 0);

        if (at >= 0 && (size_t)at < first) {
            first = (size_t)at;
            *ret_which = i;
        }
    }
    return first;
}

static int add_answer(struct parrot *p, struct view answer, char *const *controls,
                      size_t n_controls)
{
    bool used[64] = {false};

    while (answer.len) {
        size_t which = 0, len, end = next_control(answer, controls, n_controls, used, &which);
        bool added = false;

        if (end == 0) {
            len = strlen(controls[which]);
            added = add_new(p, view_sub(answer, 0, len), 3);
            used[which] = true;
        } else {
            /* One byte that is left over would be a token of the alphabet. */
            for (len = end <= 4 ? end : 3; len <= end && !added; len += !added)
                added = end - len != 1 && add_new(p, view_sub(answer, 0, len), 1);
        }
        if (!added) {
            fprintf(stderr, "make_parrot: cannot cut '%.*s'\n", (int)end, answer.p);
            return -1;
        }
        answer = view_sub(answer, len, answer.len - len);
    }
    return 0;
}

static void put_keys(struct gguf_writer *w, const struct parrot *p, const char *template)
{
    struct view *views = XNEW_ARRAY(struct view, p->n);
    static const char *const merges[] = {"h e"};

    for (size_t i = 0; i < p->n; i++)
        views[i] = view_of_str(&p->texts[i]);
    gguf_writer_string(w, "general.architecture", "llama");
    gguf_writer_string(w, "general.name", "parrot");
    gguf_writer_u32(w, "llama.block_count", 1);
    gguf_writer_u32(w, "llama.context_length", 8192);
    gguf_writer_u32(w, "llama.embedding_length", N_EMBD);
    gguf_writer_u32(w, "llama.feed_forward_length", 32);
    gguf_writer_u32(w, "llama.attention.head_count", 8);
    gguf_writer_f32(w, "llama.attention.layer_norm_rms_epsilon", 1e-6f);
    gguf_writer_string(w, "tokenizer.ggml.model", "gpt2");
    gguf_writer_string(w, "tokenizer.ggml.pre", "gpt-2");
    gguf_writer_views(w, "tokenizer.ggml.tokens", views, p->n);
    gguf_writer_array(w, "tokenizer.ggml.token_type", GGUF_I32, p->types, p->n);
    gguf_writer_strings(w, "tokenizer.ggml.merges", merges, 1);
    gguf_writer_u32(w, "tokenizer.ggml.bos_token_id", IM_START);
    gguf_writer_u32(w, "tokenizer.ggml.eos_token_id", IM_END);
    gguf_writer_bool(w, "tokenizer.ggml.add_bos_token", false);
    gguf_writer_string(w, "tokenizer.chat_template", template);
    free(views);
}

static void put_zeros(struct gguf_writer *w, const char *name, uint64_t in, uint64_t out)
{
    gguf_writer_tensor(w, name, 0, 2, (uint64_t[]){in, out}, NULL);
}

static void put_ones(struct gguf_writer *w, const char *name)
{
    float ones[N_EMBD];

    for (size_t i = 0; i < N_EMBD; i++)
        ones[i] = 1.0f;
    gguf_writer_tensor(w, name, 0, 1, (uint64_t[]){N_EMBD}, ones);
}

static void put_tensors(struct gguf_writer *w, const struct parrot *p)
{
    float *embd = XNEW_ARRAY(float, p->n *N_EMBD), *head = XNEW_ARRAY(float, p->n *N_EMBD);
    uint64_t dims[] = {N_EMBD, p->n};

    for (size_t id = 0; id < p->n; id++)
        embd[id * N_EMBD + (id < FIRST ? 0 : id - FIRST + 1)] = 1.0f;
    for (size_t id = FIRST; id < p->n; id++)
        head[id * N_EMBD + id - FIRST] = SURE;
    head[(size_t)IM_END * N_EMBD + p->n - FIRST] = SURE;
    gguf_writer_tensor(w, "token_embd.weight", 0, 2, dims, embd);
    gguf_writer_tensor(w, "output.weight", 0, 2, dims, head);
    put_ones(w, "output_norm.weight");
    put_ones(w, "blk.0.attn_norm.weight");
    put_ones(w, "blk.0.ffn_norm.weight");
    put_zeros(w, "blk.0.attn_q.weight", N_EMBD, N_EMBD);
    put_zeros(w, "blk.0.attn_k.weight", N_EMBD, N_EMBD);
    put_zeros(w, "blk.0.attn_v.weight", N_EMBD, N_EMBD);
    put_zeros(w, "blk.0.attn_output.weight", N_EMBD, N_EMBD);
    put_zeros(w, "blk.0.ffn_gate.weight", N_EMBD, 32);
    put_zeros(w, "blk.0.ffn_up.weight", N_EMBD, 32);
    put_zeros(w, "blk.0.ffn_down.weight", 32, N_EMBD);
    free(embd);
    free(head);
}

int main(int argc, char **argv)
{
    struct str template = {0}, answer = {0};
    struct gguf_writer w = {0};
    struct parrot p = {0};
    struct err err = {0};

    if (argc < 4) {
        fputs("usage: make_parrot PATH TEMPLATE ANSWER [CONTROL...]\n", stderr);
        return 2;
    }
    if (file_read_all(argv[2], 1u << 20, &template, &err) < 0 ||
        file_read_all(argv[3], 1u << 20, &answer, &err) < 0) {
        fprintf(stderr, "make_parrot: %s\n", err.text);
        return 1;
    }
    for (unsigned b = 0; b < N_BYTES; b++)
        add_token(&p, (struct view){(const char *)&(unsigned char){(unsigned char)b}, 1}, 1);
    add_token(&p, VIEW("<|im_start|>"), 3);
    add_token(&p, VIEW("<|im_end|>"), 3);
    if (argc - 4 > 64 || add_answer(&p, view_of_str(&answer), argv + 4, (size_t)argc - 4) < 0)
        return 1;
    if (p.n > FIRST + N_EMBD - 1) {
        fputs("make_parrot: the answer is too long\n", stderr);
        return 1;
    }
    put_keys(&w, &p, str_text(&template));
    put_tensors(&w, &p);
    gguf_writer_save(&w, argv[1]);
    gguf_writer_clear(&w);
    for (size_t i = 0; i < p.n; i++)
        str_clear(&p.texts[i]);
    free(p.texts);
    free(p.types);
    str_clear(&template);
    str_clear(&answer);
    return 0;
}
