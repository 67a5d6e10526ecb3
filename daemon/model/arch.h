/*
 * arch - a family of models: which keys and tensors its files have, and what a
 * layer computes.
 *
 * To add one: a file arch/NAME.c that defines
 *
 *     const struct arch arch_NAME = {...};
 *
 * (the list is made from the folder).  keys and tensors are tables: they are
 * read, checked, priced and loaded from there, and no architecture has loading
 * code.  layer() says what differs, by the parts of blocks/blocks.h.  A kind
 * of tensor that no family had before is a row of names.def; a new number a row
 * of keys.def.
 *
 * Facts of a family are from its paper and its published modelling code.
 *
 * Any thread; all of it is constant.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "backends/op.h"
#include "common/alloc.h"
#include "common/str.h"
#include "daemon/graph/graph.h"
#include "daemon/model/hparams.h"

enum tensor_name {
#define NAME(id, text, in_layer, help) TENSOR_##id,
#include "daemon/model/names.def"
#undef NAME
    TENSOR_COUNT
};

enum tensor_part {
    PART_WEIGHT,
    PART_BIAS,
    PART_BARE,
    PART_SCALE,
    PART_COUNT
}; /* bare: no end to the name */

/* A dimension of a tensor, as a number of struct hparams. */
enum dim {
    DIM_NONE, /* not there: 1 */
    DIM_ANY,  /* as the file has it */
    DIM_EMBD,
    DIM_VOCAB,
    DIM_Q, /* n_heads * head_dim, of the layer */
    DIM_K, /* n_kv_heads * head_dim */
    DIM_V, /* n_kv_heads * v_dim */
    DIM_O, /* n_heads * v_dim */
    DIM_HEAD,
    DIM_ROT_HALF, /* n_rot / 2 */
    DIM_FF,
    DIM_EXPERT,
    DIM_FF_EXP,
    DIM_FF_SHEXP,
    DIM_Q_LORA,
    DIM_KV_LORA,
    DIM_KV_A,  /* n_kv_lora + n_rot */
    DIM_Q_MLA, /* n_heads * k_mla */
    DIM_NOPE,  /* k_mla - n_rot */
    DIM_V_MLA,
    DIM_KV_B,    /* n_heads * (k_mla - n_rot + v_mla) */
    DIM_O_MLA,   /* n_heads * v_mla */
    DIM_QKV,     /* rows of a fused tensor of queries, keys and values */
    DIM_GATE_UP, /* 2 * n_ff */
    DIM_HEADS,   /* n_heads */
    DIM_INDEX,
    DIM_INDEX_Q, /* n_index_heads * index_dim */
    DIM_INDEX_HEADS,
    DIM_KV_HEADS,
    DIM_EMBD_LAYER,  /* n_embd_layer */
    DIM_EMBD_LAYERS, /* n_embd_layer * n_layers */
    DIM_CTX,         /* n_ctx_train */
    DIM_Q_GATED,     /* 2 * n_heads * head_dim */
    DIM_FF_EXP2,     /* 2 * n_ff_exp */
    DIM_CONV,        /* ssm_conv */
    DIM_CONV_WIDTH,  /* columns that are convolved */
    DIM_SSM_INNER,
    DIM_SSM_STATE,
    DIM_SSM_RANK,
    DIM_SSM_RANK2, /* 2 * ssm_rank */
    DIM_SSM_IN,    /* ssm_in_width */
    DIM_SSM_X,     /* ssm_rank + 2 * ssm_state */
    DIM_SSM_GROUPS,
    DIM_SSM_GROUP, /* ssm_inner / ssm_groups */
    DIM_EMBD3,     /* 3 * n_embd */
    DIM_LORA_DECAY,
    DIM_LORA_RATE,
    DIM_LORA_VALUE,
    DIM_LORA_GATE,
    DIM_EXPERTS_USED,
    DIM_O_PART,     /* values of a group of heads */
    DIM_O_GROUPS,   /* n_out_groups */
    DIM_O_LATENT,   /* n_out_lora */
    DIM_O_LATENTS,  /* n_out_groups * n_out_lora */
    DIM_STREAMS,    /* n_streams */
    DIM_STREAMS_IN, /* n_streams * n_embd */
    DIM_STREAMS_MIX,
    DIM_STREAMS_REST,   /* n_streams - 1 */
    DIM_STREAMS_SQUARE, /* n_streams * n_streams */
    DIM_LAUREL,         /* rank of Gemma 3n's added residual; no file says it */
    DIM_GROUP,
    DIM_GROUP_KEY, /* columns of what keys of groups are made of */
    DIM_INDEX2,    /* 2 * index_dim */
    DIM_THREE,
    DIM_SIX /* inputs that a row and the one before are mixed to */
};

enum need {
    NEED_ALWAYS,
    NEED_OPTIONAL,
    NEED_DENSE, /* where the layer has no experts; with experts it is not used */
    NEED_DENSE_OPTIONAL,
    NEED_MOE, /* where it has */
    NEED_MOE_OPTIONAL,
    NEED_SHARED,     /* where it has, when n_ff_shexp is not 0 */
    NEED_Q_LORA,     /* when n_q_lora is not 0 */
    NEED_Q_WHOLE,    /* when it is */
    NEED_EMBD_LAYER, /* when n_embd_layer is not 0 */
    NEED_ABSORBED,   /* latent attention whose expansion comes in its two parts */
    NEED_EXPANDED,   /* ... or in one */
    NEED_INDEXER,    /* where the layer has one */
    NEED_LATER       /* in all layers but the first */
};

enum tensor_use {
    USE_VECTOR, /* norms, biases, factors: f32 */
    USE_IDS,    /* i32 */
    USE_STACK,  /* as MATRIX; those of a stack may come as one of all their rows */
    USE_MATRIX  /* any format that holds weights */
};

struct tensor_row {
    enum tensor_name name;
    enum tensor_part part;
    enum need need;
    enum tensor_use use;
    enum dim dims[4];
    unsigned in;            /* kinds of layers that have it (enum layer_kind); 0: all */
    enum tensor_name other; /* a tensor of the layer that serves in its place; name: none */
};

struct key_row {
    enum key key;
    bool required;
};

struct build;
struct blk_layer;

struct arch {
    const char *name; /* general.architecture */
    enum op_rope rope;
    enum op_rope indexer_rope;
    bool no_rope;        /* positions are no part of attention */
    bool longrope;       /* RoPE may have factors for short and for long contexts */
    float swa_rope_base; /* of layers with a window where the file does not say; 0: as the others */
    bool rope_back;      /* attention's output is turned back by its position */
    bool embed_norm;     /* of what is embedded, besides that of the output */
    bool outer_norms; /* of sums: of what is embedded and what a layer gives; none for the output */
    bool layernorm;   /* norms subtract the mean; else RMS norms */
    bool swa_unscaled;   /* RoPE scaling is for the layers that see all */
    uint32_t swa_window; /* where the file does not say; 0: none */
    uint32_t swa_period; /* of layers, the last of which sees all, where the file does not say */
    bool moe_by_router; /* a layer has experts where the file has a router, whatever the keys say */
    const struct key_row *keys; /* BLOCK_COUNT first */
    size_t n_keys;
    const struct tensor_row *tensors;
    size_t n_tensors;
    /* What no table can say; may fill in what the file left out. */
    int (*check)(struct hparams *hp, struct err *err);
    /* What a layer does (enum layer_kind), by numbers that may not be checked yet; NULL: attention in all. */
    unsigned (*kind)(const struct hparams *hp, int layer);
    bool encoder; /* a token also sees those behind it: a text is one batch */
    /* x: what the layer before gave; returns what this one gives. */
    graph_value (*layer)(struct build *b, int layer, graph_value x);
    /* For layer(): what its layers differ in from the plain kind (blocks/blocks.h); NULL: nothing. */
    const struct blk_layer *parts;
};

/* NULL when unknown. */
const struct arch *arch_find(struct view name);
/* Names that begin as this one does, ", " between them; returns how many there are of all. */
size_t arch_names_like(struct view name, struct str *out);

/*
 * For check(): a mixture that says much of itself.  What the file leaves out:
 * gating as given, weights of the chosen as they are, the shared experts' width
 * n_shared times that of an expert.
 */
int arch_check_mixture(struct hparams *hp, const char *name, enum expert_gating gating,
                       struct err *err);
/* For check(), of granite: the file says what the logits are divided by, and 0 for factors that are 1. */
void arch_scales(struct hparams *hp);
/* For check(): a family that writes no text, so that a file must say how rows become an embedding. */
int arch_check_encoder(const struct hparams *hp, const char *name, struct err *err);
/* For check(): a family that is nothing without experts; their width, where the file leaves it out, by the dense one. */
int arch_check_experts(struct hparams *hp, const char *name, struct err *err);

/* For check(): interleaved sections of RoPE that leave no pair to a position that text does not have. */
int arch_check_sections(const struct hparams *hp, const char *name, struct err *err);
/*
 * For check(): sections of RoPE one behind another, which a file may have.  For
 * text, whose time, height and width are one position, they are plain RoPE over
 * pairs of halves.
 */
int arch_check_text_sections(struct hparams *hp, const char *name, struct err *err);
/* For check() and kind(): layers of the gated delta rule, with attention in every full_interval-th. */
int arch_check_delta(struct hparams *hp, const char *name, struct err *err);
unsigned arch_kind_delta(const struct hparams *hp, int layer);
/* For check(): recurrent layers of Mamba-2; of Mamba. */
int arch_check_mamba2(struct hparams *hp, const char *name, struct err *err);
int arch_check_mamba(struct hparams *hp, const char *name, struct err *err);
/* For kind(): recurrent where the file gives no KV heads; experts behind the leading dense layers. */
unsigned arch_kind_by_heads(const struct hparams *hp, int layer);
/*
 * For kind() and check(): the last n_shared_kv layers read the keys and values of
 * earlier ones, each of the last before with a window if it has one.
 */
unsigned arch_kind_shared(const struct hparams *hp, int layer);
int arch_check_shared(const struct hparams *hp, const char *name, struct err *err);
/* For kind(): recurrent in every layer. */
unsigned arch_kind_recurrent(const struct hparams *hp, int layer);
/* For kind(): a layer is one thing, feed-forward (of experts where there are any), attention or recurrent: what it has numbers for. */
unsigned arch_kind_one_part(const struct hparams *hp, int layer);
/* For check(): the epsilon of RMS norms may stand under either name. */
int arch_check_norm_eps(struct hparams *hp, const char *name, struct err *err);
/* For check(): the state of gated short convolutions over the embedding. */
void arch_size_shortconv(struct hparams *hp);

/* Rows that most tables begin with: those of RMS norms, those of layer norms. */
#define KEYS_ALL                                                                                   \
    {KEY_BLOCK_COUNT, true}, {KEY_CONTEXT_LENGTH, true}, {KEY_EMBEDDING_LENGTH, true},             \
        {KEY_POOLING, false}, {KEY_VOCAB_SIZE, false}, {KEY_HEAD_COUNT, true},                     \
        {KEY_HEAD_COUNT_KV, false}, {KEY_KEY_LENGTH, false}, {KEY_VALUE_LENGTH, false},            \
        {KEY_ROPE_DIMENSIONS, false}, {KEY_ROPE_BASE, false}, {KEY_ROPE_LINEAR, false},            \
        {KEY_ROPE_FACTOR, false}, {KEY_ROPE_ORIGINAL, false}, {KEY_ROPE_ATTN_FACTOR, false},       \
        {KEY_YARN_EXT_FACTOR, false}, {KEY_YARN_ATTN_FACTOR, false}, {KEY_YARN_BETA_FAST, false},  \
    {                                                                                              \
        KEY_YARN_BETA_SLOW, false                                                                  \
    }
#define KEYS_TRANSFORMER                                                                           \
    KEYS_ALL,                                                                                      \
    {                                                                                              \
        KEY_RMS_EPS, true                                                                          \
    }
#define KEYS_LAYERNORM                                                                             \
    KEYS_ALL,                                                                                      \
    {                                                                                              \
        KEY_NORM_EPS, true                                                                         \
    }

/* Numbers of latent attention; see blk_mla_check(). */
#define KEYS_MLA                                                                                   \
    {KEY_Q_LORA, false}, {KEY_KV_LORA, true}, {KEY_KEY_LENGTH_MLA, false},                         \
        {KEY_VALUE_LENGTH_MLA, false},                                                             \
    {                                                                                              \
        KEY_YARN_LOG_MULTIPLIER, false                                                             \
    }

#define TENSOR_ROW(name, part, need, use, in, ...)                                                 \
    {                                                                                              \
        TENSOR_##name, part, need, use, {__VA_ARGS__}, in, TENSOR_##name                           \
    }
/* Numbers of a mixture that says much of itself; see arch_check_mixture(). */
#define KEYS_MIXTURE                                                                               \
    {KEY_FEED_FORWARD_LENGTH, true}, {KEY_EXPERT_COUNT, true}, {KEY_EXPERT_USED_COUNT, true},      \
        {KEY_EXPERT_FF, false}, {KEY_SHARED_FF, false}, {KEY_EXPERT_SCALE, false},                 \
        {KEY_EXPERT_NORM, false}, {KEY_EXPERT_GATING, false}, {KEY_EXPERT_SHARED_COUNT, false},    \
        {KEY_EXPERT_GROUPS, false}, {KEY_EXPERT_GROUPS_USED, false}, {KEY_LEADING_DENSE, false},   \
    {                                                                                              \
        KEY_NEXTN_LAYERS, false                                                                    \
    }

#define KEYS_DELTA                                                                                 \
    {KEY_NEXTN_LAYERS, false}, {KEY_SSM_CONV, true}, {KEY_SSM_INNER, true}, {KEY_SSM_STATE, true}, \
        {KEY_SSM_RANK, true}, {KEY_SSM_GROUPS, true}, {KEY_RECURRENT_LAYERS, false},               \
    {                                                                                              \
        KEY_FULL_INTERVAL, false                                                                   \
    }

#define MATRIX(name, need, ...)                                                                    \
    TENSOR_ROW(name, PART_WEIGHT, NEED_##need, USE_MATRIX, 0, __VA_ARGS__)
#define VECTOR(name, need, ...)                                                                    \
    TENSOR_ROW(name, PART_WEIGHT, NEED_##need, USE_VECTOR, 0, __VA_ARGS__)
#define BIAS(name, need, ...) TENSOR_ROW(name, PART_BIAS, NEED_##need, USE_VECTOR, 0, __VA_ARGS__)
/* Not asked for where the file has the other one (a row of the table before it). */
#define MATRIX_OR(other, name, need, ...)                                                          \
    {                                                                                              \
        TENSOR_##name, PART_WEIGHT, NEED_##need, USE_MATRIX, {__VA_ARGS__}, 0, TENSOR_##other      \
    }
/* The same in layers of a kind alone. */
#define MATRIX_IN(kind, name, need, ...)                                                           \
    TENSOR_ROW(name, PART_WEIGHT, NEED_##need, USE_MATRIX, LAYER_##kind, __VA_ARGS__)
#define VECTOR_IN(kind, name, need, ...)                                                           \
    TENSOR_ROW(name, PART_WEIGHT, NEED_##need, USE_VECTOR, LAYER_##kind, __VA_ARGS__)
#define BIAS_IN(kind, name, need, ...)                                                             \
    TENSOR_ROW(name, PART_BIAS, NEED_##need, USE_VECTOR, LAYER_##kind, __VA_ARGS__)

#define STACK(name, need, ...) TENSOR_ROW(name, PART_WEIGHT, NEED_##need, USE_STACK, 0, __VA_ARGS__)
#define IDS_IN(kind, name, need, ...)                                                              \
    TENSOR_ROW(name, PART_WEIGHT, NEED_##need, USE_IDS, LAYER_##kind, __VA_ARGS__)
#define BARE_IN(kind, name, need, ...)                                                             \
    TENSOR_ROW(name, PART_BARE, NEED_##need, USE_VECTOR, LAYER_##kind, __VA_ARGS__)
#define BARE(name, need, ...) TENSOR_ROW(name, PART_BARE, NEED_##need, USE_VECTOR, 0, __VA_ARGS__)

#define TENSORS_ENDS                                                                               \
    MATRIX(TOKEN_EMBD, ALWAYS, DIM_EMBD, DIM_VOCAB), VECTOR(OUTPUT_NORM, ALWAYS, DIM_EMBD)
#define TENSORS_PROJECTIONS                                                                        \
    MATRIX(ATTN_Q, ALWAYS, DIM_EMBD, DIM_Q), MATRIX(ATTN_K, ALWAYS, DIM_EMBD, DIM_K),              \
        MATRIX(ATTN_V, ALWAYS, DIM_EMBD, DIM_V), MATRIX(ATTN_OUT, ALWAYS, DIM_O, DIM_EMBD)
/* Queries, keys and values may come in one. */
#define TENSORS_PROJECTIONS_FUSED                                                                  \
    MATRIX(ATTN_QKV, OPTIONAL, DIM_EMBD, DIM_QKV),                                                 \
        MATRIX_OR(ATTN_QKV, ATTN_Q, ALWAYS, DIM_EMBD, DIM_Q),                                      \
        MATRIX_OR(ATTN_QKV, ATTN_K, ALWAYS, DIM_EMBD, DIM_K),                                      \
        MATRIX_OR(ATTN_QKV, ATTN_V, ALWAYS, DIM_EMBD, DIM_V),                                      \
        MATRIX(ATTN_OUT, ALWAYS, DIM_O, DIM_EMBD)
/* See longrope of struct arch. */
#define TENSORS_LONGROPE                                                                           \
    VECTOR(ROPE_LONG, OPTIONAL, DIM_ROT_HALF), VECTOR(ROPE_SHORT, OPTIONAL, DIM_ROT_HALF)
#define TENSORS_QKV_BIAS(need)                                                                     \
    BIAS(ATTN_Q, need, DIM_Q), BIAS(ATTN_K, need, DIM_K), BIAS(ATTN_V, need, DIM_V)
#define TENSORS_ATTENTION                                                                          \
    VECTOR(ATTN_NORM, ALWAYS, DIM_EMBD), TENSORS_PROJECTIONS, VECTOR(FFN_NORM, ALWAYS, DIM_EMBD)
#define TENSORS_FFN(need)                                                                          \
    MATRIX(FFN_GATE, need, DIM_EMBD, DIM_FF), MATRIX(FFN_UP, need, DIM_EMBD, DIM_FF),              \
        MATRIX(FFN_DOWN, need, DIM_FF, DIM_EMBD)
/* Gates and ups may come in one. */
#define TENSORS_EXPERTS_FUSED(need)                                                                \
    MATRIX(FFN_GATE_INP, need, DIM_EMBD, DIM_EXPERT),                                              \
        MATRIX(FFN_GATE_UP_EXPS, OPTIONAL, DIM_EMBD, DIM_FF_EXP2, DIM_EXPERT),                     \
        MATRIX_OR(FFN_GATE_UP_EXPS, FFN_GATE_EXPS, need, DIM_EMBD, DIM_FF_EXP, DIM_EXPERT),        \
        MATRIX_OR(FFN_GATE_UP_EXPS, FFN_UP_EXPS, need, DIM_EMBD, DIM_FF_EXP, DIM_EXPERT),          \
        MATRIX(FFN_DOWN_EXPS, need, DIM_FF_EXP, DIM_EMBD, DIM_EXPERT)
/* One expert that every token uses, behind a gate of its own. */
#define TENSORS_SHARED_GATED                                                                       \
    MATRIX(FFN_GATE_INP_SHEXP, ALWAYS, DIM_EMBD),                                                  \
        MATRIX(FFN_GATE_SHEXP, ALWAYS, DIM_EMBD, DIM_FF_SHEXP),                                    \
        MATRIX(FFN_UP_SHEXP, ALWAYS, DIM_EMBD, DIM_FF_SHEXP),                                      \
        MATRIX(FFN_DOWN_SHEXP, ALWAYS, DIM_FF_SHEXP, DIM_EMBD)
/* The gated delta rule in recurrent layers, gated attention in the others. */
#define TENSORS_DELTA                                                                              \
    VECTOR(ATTN_NORM, ALWAYS, DIM_EMBD), VECTOR(ATTN_POST_NORM, ALWAYS, DIM_EMBD),                 \
        MATRIX_IN(ATTENTION, ATTN_Q, ALWAYS, DIM_EMBD, DIM_Q_GATED),                               \
        MATRIX_IN(ATTENTION, ATTN_K, ALWAYS, DIM_EMBD, DIM_K),                                     \
        MATRIX_IN(ATTENTION, ATTN_V, ALWAYS, DIM_EMBD, DIM_V),                                     \
        MATRIX_IN(ATTENTION, ATTN_OUT, ALWAYS, DIM_O, DIM_EMBD),                                   \
        VECTOR_IN(ATTENTION, ATTN_Q_NORM, ALWAYS, DIM_HEAD),                                       \
        VECTOR_IN(ATTENTION, ATTN_K_NORM, ALWAYS, DIM_HEAD),                                       \
        MATRIX_IN(RECURRENT, ATTN_QKV, ALWAYS, DIM_EMBD, DIM_CONV_WIDTH),                          \
        MATRIX_IN(RECURRENT, ATTN_GATE, ALWAYS, DIM_EMBD, DIM_SSM_INNER),                          \
        VECTOR_IN(RECURRENT, SSM_CONV1D, ALWAYS, DIM_CONV, DIM_CONV_WIDTH),                        \
        BIAS_IN(RECURRENT, SSM_DT, ALWAYS, DIM_SSM_RANK),                                          \
        BARE_IN(RECURRENT, SSM_A, ALWAYS, DIM_SSM_RANK),                                           \
        VECTOR_IN(RECURRENT, SSM_NORM, ALWAYS, DIM_SSM_STATE),                                     \
        MATRIX_IN(RECURRENT, SSM_OUT, ALWAYS, DIM_SSM_INNER, DIM_EMBD)
#define KEYS_SSM                                                                                   \
    {KEY_SSM_CONV, true}, {KEY_SSM_INNER, true}, {KEY_SSM_STATE, true},                            \
    {                                                                                              \
        KEY_SSM_RANK, true                                                                         \
    }
/* All of a family whose layers are that and nothing else. */
#define KEYS_SSM_ALONE                                                                             \
    {KEY_BLOCK_COUNT, true}, {KEY_CONTEXT_LENGTH, true}, {KEY_EMBEDDING_LENGTH, true},             \
        {KEY_VOCAB_SIZE, false}, {KEY_HEAD_COUNT, false}, {KEY_FEED_FORWARD_LENGTH, false},        \
        {KEY_RMS_EPS, true}, KEYS_SSM
/* Layers of Mamba-2, and of Mamba. */
#define TENSORS_MAMBA2                                                                             \
    MATRIX_IN(RECURRENT, SSM_IN, ALWAYS, DIM_EMBD, DIM_SSM_IN),                                    \
        VECTOR_IN(RECURRENT, SSM_CONV1D, ALWAYS, DIM_CONV, DIM_CONV_WIDTH),                        \
        BIAS_IN(RECURRENT, SSM_CONV1D, OPTIONAL, DIM_CONV_WIDTH),                                  \
        BIAS_IN(RECURRENT, SSM_DT, ALWAYS, DIM_SSM_RANK),                                          \
        BARE_IN(RECURRENT, SSM_A, ALWAYS, DIM_NONE, DIM_SSM_RANK),                                 \
        BARE_IN(RECURRENT, SSM_D, ALWAYS, DIM_NONE, DIM_SSM_RANK),                                 \
        VECTOR_IN(RECURRENT, SSM_NORM, OPTIONAL, DIM_SSM_GROUP, DIM_SSM_GROUPS),                   \
        MATRIX_IN(RECURRENT, SSM_OUT, ALWAYS, DIM_SSM_INNER, DIM_EMBD)
#define TENSORS_MAMBA                                                                              \
    MATRIX_IN(RECURRENT, SSM_IN, ALWAYS, DIM_EMBD, DIM_SSM_IN),                                    \
        VECTOR_IN(RECURRENT, SSM_CONV1D, ALWAYS, DIM_CONV, DIM_CONV_WIDTH),                        \
        BIAS_IN(RECURRENT, SSM_CONV1D, OPTIONAL, DIM_CONV_WIDTH),                                  \
        MATRIX_IN(RECURRENT, SSM_X, ALWAYS, DIM_SSM_INNER, DIM_SSM_X),                             \
        MATRIX_IN(RECURRENT, SSM_DT, ALWAYS, DIM_SSM_RANK, DIM_SSM_INNER),                         \
        BIAS_IN(RECURRENT, SSM_DT, ALWAYS, DIM_SSM_INNER),                                         \
        BARE_IN(RECURRENT, SSM_A, ALWAYS, DIM_SSM_STATE, DIM_SSM_INNER),                           \
        BARE_IN(RECURRENT, SSM_D, ALWAYS, DIM_SSM_INNER),                                          \
        MATRIX_IN(RECURRENT, SSM_OUT, ALWAYS, DIM_SSM_INNER, DIM_EMBD)
/* Attention in layers that have it. */
#define TENSORS_SOME_ATTENTION                                                                     \
    MATRIX_IN(ATTENTION, ATTN_Q, ALWAYS, DIM_EMBD, DIM_Q),                                         \
        MATRIX_IN(ATTENTION, ATTN_K, ALWAYS, DIM_EMBD, DIM_K),                                     \
        MATRIX_IN(ATTENTION, ATTN_V, ALWAYS, DIM_EMBD, DIM_V),                                     \
        MATRIX_IN(ATTENTION, ATTN_OUT, ALWAYS, DIM_O, DIM_EMBD),                                   \
        BIAS_IN(ATTENTION, ATTN_Q, OPTIONAL, DIM_Q), BIAS_IN(ATTENTION, ATTN_K, OPTIONAL, DIM_K),  \
        BIAS_IN(ATTENTION, ATTN_V, OPTIONAL, DIM_V),                                               \
        BIAS_IN(ATTENTION, ATTN_OUT, OPTIONAL, DIM_EMBD)
#define TENSORS_EXPERTS(need)                                                                      \
    MATRIX(FFN_GATE_INP, need, DIM_EMBD, DIM_EXPERT),                                              \
        MATRIX(FFN_GATE_EXPS, need, DIM_EMBD, DIM_FF_EXP, DIM_EXPERT),                             \
        MATRIX(FFN_UP_EXPS, need, DIM_EMBD, DIM_FF_EXP, DIM_EXPERT),                               \
        MATRIX(FFN_DOWN_EXPS, need, DIM_FF_EXP, DIM_EMBD, DIM_EXPERT)
#define TENSORS_SHARED                                                                             \
    MATRIX(FFN_GATE_SHEXP, SHARED, DIM_EMBD, DIM_FF_SHEXP),                                        \
        MATRIX(FFN_UP_SHEXP, SHARED, DIM_EMBD, DIM_FF_SHEXP),                                      \
        MATRIX(FFN_DOWN_SHEXP, SHARED, DIM_FF_SHEXP, DIM_EMBD)
/* What KEYS_MIXTURE speaks of: experts, shared ones, and dense layers among them. */
#define TENSORS_MIXTURE                                                                            \
    TENSORS_FFN(DENSE), TENSORS_EXPERTS(MOE), BIAS(EXP_PROBS_B, MOE_OPTIONAL, DIM_EXPERT),         \
        TENSORS_SHARED
#define TENSORS_MLA                                                                                \
    VECTOR(ATTN_NORM, ALWAYS, DIM_EMBD), VECTOR(FFN_NORM, ALWAYS, DIM_EMBD),                       \
        MATRIX(ATTN_Q, Q_WHOLE, DIM_EMBD, DIM_Q_MLA),                                              \
        MATRIX(ATTN_Q_A, Q_LORA, DIM_EMBD, DIM_Q_LORA), VECTOR(ATTN_Q_A_NORM, Q_LORA, DIM_Q_LORA), \
        MATRIX(ATTN_Q_B, Q_LORA, DIM_Q_LORA, DIM_Q_MLA),                                           \
        MATRIX(ATTN_KV_A, ALWAYS, DIM_EMBD, DIM_KV_A),                                             \
        VECTOR(ATTN_KV_A_NORM, ALWAYS, DIM_KV_LORA),                                               \
        MATRIX(ATTN_K_B, ABSORBED, DIM_NOPE, DIM_KV_LORA, DIM_HEADS),                              \
        MATRIX(ATTN_V_B, ABSORBED, DIM_KV_LORA, DIM_V_MLA, DIM_HEADS),                             \
        MATRIX(ATTN_KV_B, EXPANDED, DIM_KV_LORA, DIM_KV_B),                                        \
        MATRIX(ATTN_OUT, ALWAYS, DIM_O_MLA, DIM_EMBD)
/* Where a layer chooses what it attends to; numbers and check as blk_indexer_check() says. */
#define KEYS_INDEXER                                                                               \
    {KEY_INDEX_HEADS, true}, {KEY_INDEX_DIM, true},                                                \
    {                                                                                              \
        KEY_INDEX_TOP_K, true                                                                      \
    }
#define TENSORS_INDEXER                                                                            \
    MATRIX(INDEXER_K, INDEXER, DIM_EMBD, DIM_INDEX), VECTOR(INDEXER_K_NORM, INDEXER, DIM_INDEX),   \
        BIAS(INDEXER_K_NORM, INDEXER, DIM_INDEX),                                                  \
        MATRIX(INDEXER_Q, INDEXER, DIM_Q_LORA, DIM_INDEX_Q),                                       \
        MATRIX(INDEXER_PROJ, INDEXER, DIM_EMBD, DIM_INDEX_HEADS)
/* Of encoders whose layers norm their sums. */
#define TENSORS_OUTER_NORMS                                                                        \
    VECTOR(TOKEN_EMBD_NORM, ALWAYS, DIM_EMBD), BIAS(TOKEN_EMBD_NORM, ALWAYS, DIM_EMBD),            \
        VECTOR(ATTN_OUT_NORM, ALWAYS, DIM_EMBD), BIAS(ATTN_OUT_NORM, ALWAYS, DIM_EMBD),            \
        VECTOR(LAYER_OUT_NORM, ALWAYS, DIM_EMBD), BIAS(LAYER_OUT_NORM, ALWAYS, DIM_EMBD)

/* All of LFM2 but its feed-forward parts. */
#define TENSORS_LFM2                                                                               \
    MATRIX(TOKEN_EMBD, ALWAYS, DIM_EMBD, DIM_VOCAB), VECTOR(TOKEN_EMBD_NORM, ALWAYS, DIM_EMBD),    \
        MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB), VECTOR(ATTN_NORM, ALWAYS, DIM_EMBD),        \
        VECTOR(FFN_NORM, ALWAYS, DIM_EMBD),                                                        \
        VECTOR_IN(RECURRENT, SHORTCONV_CONV, ALWAYS, DIM_CONV, DIM_EMBD),                          \
        MATRIX_IN(RECURRENT, SHORTCONV_IN, ALWAYS, DIM_EMBD, DIM_EMBD3),                           \
        MATRIX_IN(RECURRENT, SHORTCONV_OUT, ALWAYS, DIM_EMBD, DIM_EMBD), TENSORS_SOME_ATTENTION,   \
        VECTOR_IN(ATTENTION, ATTN_Q_NORM, ALWAYS, DIM_HEAD),                                       \
        VECTOR_IN(ATTENTION, ATTN_K_NORM, ALWAYS, DIM_HEAD)

/*
 * Layers of Gemma 3n and Gemma 4: embeddings that each has, of all of them and
 * what it makes of its own; then all else, the last layers without keys and
 * values of their own (v: the need of values in the others).
 */
#define TENSORS_OWN_TABLES(need)                                                                   \
    MATRIX(LAYERS_EMBD, need, DIM_EMBD_LAYERS, DIM_VOCAB),                                         \
        MATRIX(LAYERS_PROJ, need, DIM_EMBD, DIM_EMBD_LAYERS),                                      \
        VECTOR(LAYERS_NORM, need, DIM_EMBD_LAYER)
#define TENSORS_OWN(need)                                                                          \
    MATRIX(LAYER_GATE, need, DIM_EMBD, DIM_EMBD_LAYER),                                            \
        MATRIX(LAYER_PROJ, need, DIM_EMBD_LAYER, DIM_EMBD),                                        \
        VECTOR(LAYER_POST_NORM, need, DIM_EMBD)
#define TENSORS_SHARING(v)                                                                         \
    VECTOR(ATTN_NORM, ALWAYS, DIM_EMBD), MATRIX(ATTN_Q, ALWAYS, DIM_EMBD, DIM_Q),                  \
        MATRIX_IN(ATTENTION, ATTN_K, ALWAYS, DIM_EMBD, DIM_K),                                     \
        MATRIX_IN(ATTENTION, ATTN_V, v, DIM_EMBD, DIM_V),                                          \
        MATRIX(ATTN_OUT, ALWAYS, DIM_O, DIM_EMBD), VECTOR(ATTN_Q_NORM, ALWAYS, DIM_HEAD),          \
        VECTOR_IN(ATTENTION, ATTN_K_NORM, ALWAYS, DIM_HEAD),                                       \
        VECTOR(ATTN_POST_NORM, ALWAYS, DIM_EMBD), VECTOR(FFN_NORM, ALWAYS, DIM_EMBD),              \
        TENSORS_FFN(ALWAYS), VECTOR(FFN_POST_NORM, ALWAYS, DIM_EMBD)

/* A layer of Gemma 3, also as an encoder. */
#define TENSORS_GEMMA3                                                                             \
    TENSORS_ATTENTION, VECTOR(ATTN_Q_NORM, ALWAYS, DIM_HEAD),                                      \
        VECTOR(ATTN_K_NORM, ALWAYS, DIM_HEAD), VECTOR(ATTN_POST_NORM, ALWAYS, DIM_EMBD),           \
        VECTOR(FFN_POST_NORM, ALWAYS, DIM_EMBD), TENSORS_FFN(ALWAYS)
