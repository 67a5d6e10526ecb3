/*
 * hparams - the numbers of a model's metadata, checked.
 *
 * keys.def lists the keys: name, type, field, range.  An architecture says
 * which of them it reads and which it needs (arch.h).  After hparams_read every
 * number is in its range, so sizes made of them cannot overflow 64 bits, and
 * what the file leaves out has the value that its family means by that.
 *
 * Any one thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "daemon/gguf/gguf.h"

enum key {
#define KEY(id, name, type, field, lo, hi) KEY_##id,
#include "daemon/model/keys.def"
#undef KEY
    KEY_COUNT
};

#define HPARAMS_MAX_LAYERS 1024 /* what keys.def allows of block_count */

/* What a layer does; flags. */
enum layer_kind {
    LAYER_ATTENTION = 1, /* keeps keys and values */
    LAYER_RECURRENT = 2, /* keeps a state of fixed size */
    LAYER_SHARED = 16,   /* attention by the keys and values of an earlier layer */
    LAYER_WINDOW = 8,    /* its attention sees n_swa positions, not all of the past */
    LAYER_MLP = 32,      /* nothing but its feed-forward part */
    LAYER_GROUPS = 64,   /* its attention sees keys of groups of positions, besides a window */
    LAYER_HASH = 128,    /* its experts are chosen by the token alone */
    LAYER_GATED = 256,   /* ... by a router, where there are layers of both */
    LAYER_MOE = 4        /* its feed-forward part has experts */
};

/* Numbers that a file may give layer by layer. */
struct hparams_layer {
    uint32_t n_heads, n_kv_heads, n_ff;
    uint32_t group; /* positions that share a key; 0: none do */
    float limit,
        limit_shared; /* of the gated activations of experts, and of the shared ones; 0: none */
    bool indexer;     /* chooses positions; else those of the layer before, if any does */
    bool recurrent;   /* as the file has it, where it says so by layer */
    bool window;      /* as the file has it; then LAYER_WINDOW of kind says */
    unsigned kind;    /* of enum layer_kind */
};

/* LONG: by factors of the file, for short and for long contexts (Ding et al. 2024, arXiv 2402.13753). */
enum rope_scaling { ROPE_SCALING_NONE, ROPE_SCALING_LINEAR, ROPE_SCALING_YARN, ROPE_SCALING_LONG };

/* What an embedding model makes of the rows of a text; the numbers are the file's. */
enum pooling { POOLING_NONE, POOLING_MEAN, POOLING_CLS, POOLING_LAST, POOLING_RANK };

/* As the files number them. */
enum expert_gating {
    EXPERT_GATING_NONE, /* not said */
    EXPERT_GATING_SOFTMAX,
    EXPERT_GATING_SIGMOID,
    EXPERT_GATING_SOFTMAX_CHOSEN,
    EXPERT_GATING_SQRT_SOFTPLUS,
    EXPERT_GATING_SIGMOID_CHOSEN = 100 /* of a family, in no file */
};

struct hparams {
    bool has[KEY_COUNT]; /* the file has the key */
    uint32_t pooling;    /* enum pooling; NONE: the model writes text */
    uint32_t n_ctx_train, n_embd, n_vocab;
    uint32_t
        n_layers; /* that are run: without those for drafting, n_nextn, which stand behind them */
    uint32_t n_nextn;
    uint32_t n_heads, n_kv_heads, n_ff; /* most of any layer */
    uint32_t head_dim, v_dim;
    uint32_t head_dim_swa, v_dim_swa, n_rot_swa; /* of layers with a window */
    uint32_t n_shared_kv;      /* layers at the end that keep no keys and values of their own */
    uint32_t group;            /* most of any layer */
    float limit, limit_shared; /* unused: layers have them */
    uint32_t n_out_groups, n_out_lora; /* parts of attention's output, and the latent of each */
    uint32_t n_streams, n_sinkhorn;    /* of hyper-connections; normings of their matrix */
    float stream_eps;
    uint32_t altup_active;  /* stream that layers compute with: the first */
    uint32_t n_hash_layers; /* at the start, whose experts are chosen by the token */
    float rope_base_groups;
    uint32_t n_embd_layer; /* of the embeddings that each layer has; 0: none */
    float rms_eps, norm_eps, attention_scale;
    float temperature_scale;                            /* of queries by position; 0: none */
    float attn_soft_cap, final_soft_cap;                /* 0: none */
    float embedding_scale, residual_scale, logit_scale; /* factors; 1 where the file has none */
    uint32_t n_swa, swa_period;
    bool recurrent;    /* unused: layers have it */
    bool rope_halves;  /* RoPE pairs halves, whatever the family usually does */
    bool swa_by_layer; /* the file says which layers have the window */
    float rope_base_swa;
    uint32_t n_rot, n_ctx_orig;
    float rope_base, rope_factor, rope_attn_factor;
    float yarn_ext_factor, yarn_attn_factor, yarn_beta_fast, yarn_beta_slow;
    enum rope_scaling rope_scaling;
    uint32_t n_expert, n_expert_used, n_ff_exp, n_ff_shexp;
    uint32_t n_shared, n_group, n_group_used; /* experts for all tokens; groups of the others */
    uint32_t n_dense_lead, moe_step;          /* experts: every moe_step-th layer after the lead */
    uint32_t expert_gating;
    uint32_t n_q_lora, n_kv_lora, k_mla, v_mla; /* latent attention: latents, heads when expanded */
    bool absorbed; /* ... its expansion is a part of the queries and of the output */
    float yarn_log_multiplier;
    float value_scale;
    uint32_t temperature_length;
    uint32_t n_index_heads, index_dim, index_top_k; /* of indexers: what a row attends to */
    bool indexer;                                   /* some layer has one */
    bool expert_norm;                               /* weights of the chosen sum to 1 */
    float expert_scale;
    uint32_t rope_sections[4]; /* pairs that turn by time, height, width, another position */
    bool rope_finetuned;    /* as in the file; Granite means by it whether there is RoPE at all */
    uint32_t ssm_in_width;  /* columns of what goes into a recurrent layer; set by check() */
    uint32_t full_interval; /* every so manieth layer has attention, the others are recurrent */
    uint32_t ssm_conv, ssm_inner, ssm_state, ssm_rank, ssm_groups; /* as in the file */
    uint32_t lora_decay, lora_rate, lora_value, lora_gate; /* widths of RWKV's small projections */
    uint32_t n_shift; /* parts of a layer that see the row before */
    /* What a recurrent layer keeps; set by check() of its family. */
    uint32_t conv_rows, conv_width, state_heads, state_rows, state_cols;
    struct hparams_layer layers[HPARAMS_MAX_LAYERS];
};

static inline uint32_t hparams_head_dim(const struct hparams *hp, size_t layer)
{
    return hp->layers[layer].kind & LAYER_WINDOW ? hp->head_dim_swa : hp->head_dim;
}

static inline uint32_t hparams_v_dim(const struct hparams *hp, size_t layer)
{
    return hp->layers[layer].kind & LAYER_WINDOW ? hp->v_dim_swa : hp->v_dim;
}

/* What is kept of the rows that keys of groups are made of: rows, and columns of each. */
static inline uint32_t hparams_group_rows(const struct hparams *hp, size_t layer)
{
    return hp->layers[layer].group * (hp->layers[layer].indexer ? 2 : 1);
}

static inline uint32_t hparams_group_width(const struct hparams *hp, size_t layer)
{
    return hp->layers[layer].indexer ? 4 * (hp->head_dim + hp->index_dim) : 2 * hp->head_dim;
}

struct arch;

/* vocab: tokens of the tokenizer, 0 when the file has none (then vocab_size says). */
int hparams_read(const struct gguf *g, const struct arch *arch, uint64_t vocab, struct hparams *ret,
                 struct err *err);

/* Does the architecture read this key?  name: without its prefix. */
bool hparams_reads(const struct arch *arch, struct view name);
