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
    graph_value rope; /* cos and sin of the batch's positions */
};

/* Embedded tokens; also makes the RoPE table. */
graph_value blk_embed(struct build *b);

graph_value blk_add(struct build *b, graph_value x, graph_value y);
/* RMS norm of whole rows by a tensor of the layer (−1: outside). */
graph_value blk_rmsnorm(struct build *b, graph_value x, enum tensor_name name, int layer);

struct blk_attention {
    bool qk_norm; /* RMS norm of each head of q and k before RoPE, where there are weights for it */
    bool norm_rows; /* ... of whole rows in place of heads */
    bool norm_late; /* ... after RoPE */
};
/* Grouped-query attention over all of the past; x is normed. */
graph_value blk_attention(struct build *b, int layer, graph_value x,
                          const struct blk_attention *opt);

/*
 * Latent attention; x is normed.  The check derives what blk_mla needs, and the
 * scale.  one_magnitude: YaRN's rotation has the length 1 whatever the multiplier.
 */
int blk_mla_check(struct hparams *hp, const char *name, bool one_magnitude, struct err *err);
graph_value blk_mla(struct build *b, int layer, graph_value x);

/* down(silu(gate x) * up x) */
graph_value blk_swiglu(struct build *b, int layer, graph_value x);
/* The same of the shared experts: they are one of their widths together. */
graph_value blk_swiglu_shared(struct build *b, int layer, graph_value x);

struct blk_moe {
    bool normalise; /* weights of the chosen experts sum to 1 */
};
/*
 * What the hyperparameters of a mixture say (arch_check_mixture): SwiGLU
 * experts, with the shared ones beside them, or the dense part in a layer
 * without experts.
 */
graph_value blk_mixture(struct build *b, int layer, graph_value x);
/* Router over SwiGLU experts; gating, groups and scale as the file has them. */
graph_value blk_moe(struct build *b, int layer, graph_value x, const struct blk_moe *opt);
/* One SwiGLU expert that every token uses, times the sigmoid of a gate of its own. */
graph_value blk_shared_expert(struct build *b, int layer, graph_value x);

/* Norm and output head: the logits; of an embedding model the normed rows. */
void blk_head(struct build *b, graph_value x);
