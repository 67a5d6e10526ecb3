/* The entry: token rows, and the table of rotations.  See blocks.h. */

#include "daemon/model/blocks/blocks.h"

/* YaRN's own magnitude, 1 + 0.1 ln(factor), is part of the op (op.h); linear scaling has none. */
static struct op_rope_params rope_params(const struct build *b)
{
    const struct hparams *hp = b->hp;
    bool yarn = hp->rope_scaling == ROPE_SCALING_YARN;

    return (struct op_rope_params){
        .type = b->m->arch->rope,
        .n_dims = hp->n_rot,
        .base = hp->rope_base,
        .freq_scale = hp->rope_scaling == ROPE_SCALING_NONE ? 1.0f : 1.0f / hp->rope_factor,
        .ext_factor = yarn ? hp->yarn_ext_factor : 0.0f,
        .attn_factor = hp->rope_attn_factor * (yarn ? hp->yarn_attn_factor : 1.0f),
        .beta_fast = hp->yarn_beta_fast,
        .beta_slow = hp->yarn_beta_slow,
        .n_ctx_orig = hp->n_ctx_orig,
    };
}

graph_value blk_embed(struct build *b)
{
    struct op_rope_params p = rope_params(b);

    b->rope = graph_rope_table(b->g, &p, model_weight(b->m, -1, TENSOR_ROPE_FREQS, PART_WEIGHT));
    return graph_embed(b->g, model_weight(b->m, -1, TENSOR_TOKEN_EMBD, PART_WEIGHT), 1.0f);
}

graph_value blk_add(struct build *b, graph_value x, graph_value y)
{
    return graph_add(b->g, x, y);
}

graph_value blk_rmsnorm(struct build *b, graph_value x, enum tensor_name name, int layer)
{
    return graph_rmsnorm(b->g, x, model_weight(b->m, layer, name, PART_WEIGHT), b->hp->rms_eps, 0);
}
