/*
 * blocks - the parts that families share, as functions on a graph under
 * construction.
 *
 * Weights are found by their standard names; a bias is used where the file has
 * it and the architecture's table allows it.  The last layer cuts its rows to
 * those whose logits are wanted after attention, before any further product.
 *
 * Thread: that of the model.
 */
#pragma once

#include "daemon/model/model_priv.h"

struct build {
    struct graph *g;
    const struct model *m;
    const struct hparams *hp;
    size_t n_ctx;         /* positions of the sequences it is for */
    graph_value embedded; /* what blk_embed() gave */
    graph_value rope;     /* cos and sin of the batch's positions */
    graph_value chosen;   /* positions by the last indexer */
    graph_value v_first;  /* values of the first layer of RWKV */
    graph_value
        rope_back[2];     /* of both tables, the other way round: of those without a window first */
    graph_value rope_swa; /* those of the layers with a window */
};

/* Of the layer (−1: outside); absent where the file has none. */
static inline const struct graph_weight *blk_weight(const struct build *b, int layer,
                                                    enum tensor_name name)
{
    return model_weight(b->m, layer, name, PART_WEIGHT);
}
static inline const struct graph_weight *blk_bias(const struct build *b, int layer,
                                                  enum tensor_name name)
{
    return model_weight(b->m, layer, name, PART_BIAS);
}
static inline const struct graph_weight *blk_bare(const struct build *b, int layer,
                                                  enum tensor_name name)
{
    return model_weight(b->m, layer, name, PART_BARE);
}

/*
 * Embedded tokens, scaled, with the rows of their positions and of the first
 * token type where the file has such tables, normed where it has a norm for
 * that; also makes the RoPE tables.
 */
graph_value blk_embed(struct build *b);

graph_value blk_add(struct build *b, graph_value x, graph_value y);
/* x where the layer is not the last; its wanted rows where it is. */
graph_value blk_last(struct build *b, int layer, graph_value x);
/* act(gate) * y; the gate is cut to the wanted rows where y is. */
graph_value blk_gate(struct build *b, enum op_act act, graph_value gate, graph_value y);
/* RMS norm of whole rows by a tensor of the layer (−1: outside). */
graph_value blk_rmsnorm(struct build *b, graph_value x, enum tensor_name name, int layer);
/* The norm of the family: that, or a layer norm; with the bias that the file has. */
graph_value blk_norm(struct build *b, graph_value x, enum tensor_name name, int layer);

struct blk_attention {
    bool qk_norm;   /* norm of each head of q and k before RoPE, where there are weights for it */
    bool norm_rows; /* ... of whole rows in place of heads */
    bool norm_late; /* ... after RoPE */
    bool v_norm;    /* RMS norm of each head of v, without weights */
    bool norm_bare; /* ... by no weights, which no file has then */
    bool no_rope;
    bool near_rope;    /* RoPE in layers with a window alone */
    float temperature; /* 0, or q grows with its position (graph_temperature) */
    unsigned step, offset;
    bool chunked;    /* the layer's window begins at multiples of itself */
    bool gate_apart; /* a sigmoid gate of the output is a tensor of its own */
    bool gated;      /* attn_q gives each head's queries and a gate of its output behind them */
};
/*
 * Grouped-query attention over all of the past, or over the layer's window; x
 * is normed.  Queries, keys and values may be one tensor, and keys serve as
 * values where the file has none; sinks and a soft cap are used where it has
 * them.  A layer of kind LAYER_SHARED reads the keys and values of the last
 * layer before that has such and as wide a window.
 */
graph_value blk_attention(struct build *b, int layer, graph_value x,
                          const struct blk_attention *opt);

/*
 * Latent attention; x is normed.  The check derives what blk_mla needs, and the
 * scale.  one_magnitude: YaRN's rotation has the length 1 whatever the multiplier.
 */
int blk_mla_check(struct hparams *hp, const char *name, bool one_magnitude, struct err *err);
/* temperature: as in struct blk_attention. */
struct blk_mla {
    float temperature;
    unsigned step;
};
graph_value blk_mla(struct build *b, int layer, graph_value x, const struct blk_mla *opt);

/*
 * Which positions a row attends to, where there are more of them than top_k
 * (DeepSeek-V3.2, arXiv 2512.02556); x is normed, q_latent that of the queries.
 * The check wants queries with a latent and one kv head; layers without an
 * indexer take the choice of the one before.
 */
int blk_indexer_check(struct hparams *hp, const char *name, struct err *err);
graph_value blk_indexer(struct build *b, int layer, graph_value x, graph_value q_latent);

/*
 * Gated DeltaNet (Yang et al. 2024, arXiv 2412.06464): short convolution, delta
 * rule on the layer's state, gated norm; x is normed.
 */
struct blk_delta {
    bool adjacent; /* heads that share keys lie side by side; rates and steps come in one */
};
graph_value blk_delta(struct build *b, int layer, graph_value x, const struct blk_delta *opt);
/* What the layer's kind says: that, or gated attention with QK-norm. */
graph_value blk_delta_or_attention(struct build *b, int layer, graph_value x, bool adjacent);
/* A whole layer of it, x not normed: behind it experts whose weights sum to 1, and a shared one behind a gate. */
graph_value blk_delta_mixture(struct build *b, int layer, graph_value x, bool adjacent);

/* Mamba-2 (Dao and Gu 2024, arXiv 2405.21060); Mamba (Gu and Dao 2023, 2312.00752); x is normed. */
graph_value blk_mamba2(struct build *b, int layer, graph_value x);
graph_value blk_mamba(struct build *b, int layer, graph_value x);
/* Kimi Delta Attention (Kimi Linear 2025, arXiv 2510.26692): the delta rule with a decay for each key. */
graph_value blk_kda(struct build *b, int layer, graph_value x);
/* RWKV-7 (Peng et al. 2025, arXiv 2503.14456): a state, and a feed-forward part; x is normed. */
graph_value blk_time_mix(struct build *b, int layer, graph_value x);
graph_value blk_channel_mix(struct build *b, int layer, graph_value x);
/* LFM2's gated short convolution (arXiv 2511.23404). */
graph_value blk_shortconv(struct build *b, int layer, graph_value x);

/* down(act(gate x) * up x); without a gate, down(act(up x)); the two may be one tensor, gate first. */
graph_value blk_ffn(struct build *b, int layer, graph_value x, enum op_act act);
/* The same of what of the gate is above its mean by s deviations; nothing of the rest. */
graph_value blk_ffn_above(struct build *b, int layer, graph_value x, enum op_act act, float s);
/* The same by silu. */
graph_value blk_swiglu(struct build *b, int layer, graph_value x);
/* The same of the shared experts: they are one of their widths together. */
graph_value blk_ffn_shared(struct build *b, int layer, graph_value x, enum op_act act);

/* What the layers of dense families differ in. */
struct blk_layer {
    struct blk_attention attention;
    enum op_act act;           /* silu unless said */
    bool post_norms;           /* norms behind both parts, beside those before */
    enum tensor_name ffn_norm; /* the norm before the feed-forward part; 0: FFN_NORM */
};
/* Times the scale of what is added to the residual stream, where the file has one. */
graph_value blk_residual(struct build *b, graph_value x);
/* x += attention(norm x); x += ffn(norm x) or experts; both times the residual scale. */
graph_value blk_layer(struct build *b, int layer, graph_value x, const struct blk_layer *opt);
/* x += norm(attention(x)); x += norm(ffn(x)) */
graph_value blk_layer_post(struct build *b, int layer, graph_value x, const struct blk_layer *opt);

/* Layers of whole families, by what the family says of them (parts of struct arch): blk_layer(); blk_layer_post(); */
graph_value blk_plain_layer(struct build *b, int layer, graph_value x);
graph_value blk_post_layer(struct build *b, int layer, graph_value x);
/* x = norm(x + attention(x)); x = norm(x + ffn(x)); */
graph_value blk_outer_layer(struct build *b, int layer, graph_value x);
/* x += attention(norm x) + ffn(norm x), of one norm; or attention(norm2 x) where there is one. */
graph_value blk_parallel_layer(struct build *b, int layer, graph_value x);
/* Gemma 3's parts: head norms, GELU, and norms behind both parts too. */
extern const struct blk_layer blk_gemma3;
/* x += latent attention(norm x), or what blk_shortconv() says or attention with QK-norm; x += blk_mixture(norm x). */
graph_value blk_mla_layer(struct build *b, int layer, graph_value x);
graph_value blk_shortconv_layer(struct build *b, int layer, graph_value x);
/* x += one part of norm x, by its kind: Mamba-2, attention, or squared ReLU, of experts where it has them. */
graph_value blk_one_part_layer(struct build *b, int layer, graph_value x);

/* The rotations of a layer with a window, or of the others. */
struct op_rope_params blk_rope_params(const struct build *b, bool swa);

/*
 * DeepSeek-V4's attention (its published modelling code): one key for all heads,
 * which is the value too; a window, and behind it keys of groups of positions,
 * all of them or those that an indexer chooses; an output in parts by latents.
 * x is normed.
 */
graph_value blk_near_far(struct build *b, int layer, graph_value x);
/* Hyper-connections: what a part reads of the streams (ret_mix: for blk_leave), and what it leaves. */
graph_value blk_enter(struct build *b, int layer, graph_value streams, enum tensor_name fn,
                      graph_value *ret_mix);
graph_value blk_leave(struct build *b, graph_value streams, graph_value y, graph_value mix);
/* One stream n times; streams as the output reads them. */
graph_value blk_streams(struct build *b, graph_value x);
graph_value blk_one_stream(struct build *b, graph_value streams);

/*
 * Alternating updates (Baykal et al. 2023, arXiv 2301.13310): streams of one
 * row, the others by projections as long as it; what they become before a
 * layer, which computes with the first; what its output makes of all; and their
 * mean, again by projections as long as the first.
 */
graph_value blk_altup_split(struct build *b, graph_value x);
graph_value blk_altup_predict(struct build *b, int layer, graph_value streams);
graph_value blk_altup_correct(struct build *b, int layer, graph_value streams, graph_value first);
graph_value blk_altup_mean(struct build *b, graph_value streams);
/* The stream that layers compute with; the others. */
graph_value blk_altup_first(struct build *b, graph_value streams);
graph_value blk_altup_rest(struct build *b, graph_value streams);

/*
 * Embeddings that each layer has (Gemma 3n): the layer's own of the batch's
 * tokens, with what a projection of their embeddings adds, and what it makes of
 * x through a gate, normed.
 */
graph_value blk_own_embedding(struct build *b, int layer);
graph_value blk_own(struct build *b, int layer, graph_value x, graph_value own);

struct blk_moe {
    bool normalise;              /* weights of the chosen experts sum to 1 */
    bool weigh_first;            /* they are of what gate and up give */
    enum op_act act;             /* silu unless said */
    const graph_value *router_x; /* what the router sees; NULL: x */
};
/*
 * What the hyperparameters of a mixture say (arch_check_mixture): experts, with
 * the shared ones beside them, or the dense part in a layer without experts;
 * all by one activation, or by silu.
 */
graph_value blk_mixture_of(struct build *b, int layer, graph_value x, enum op_act act);
graph_value blk_mixture(struct build *b, int layer, graph_value x);
/*
 * Router over gated experts; gating, groups, scale and biases as the file has
 * them.
 */
graph_value blk_moe(struct build *b, int layer, graph_value x, const struct blk_moe *opt);
/* One SwiGLU expert that every token uses, times the sigmoid of a gate of its own. */
graph_value blk_shared_expert(struct build *b, int layer, graph_value x);

/* Norm, output head, scale and soft cap: the logits; of an embedding model the normed rows. */
void blk_head(struct build *b, graph_value x);
