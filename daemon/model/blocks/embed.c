/* The entry: token rows, and the tables of rotations.  See blocks.h. */

#include "daemon/model/blocks/blocks.h"

/* YaRN's own magnitude, 1 + 0.1 ln(factor), is part of the op (op.h); linear scaling has none. */
struct op_rope_params blk_rope_params(const struct build *b, bool swa)
{
    const struct hparams *hp = b->hp;
    bool plain = swa && b->m->arch->swa_unscaled;
    bool scaled = hp->rope_scaling != ROPE_SCALING_NONE && !plain;
    bool yarn = scaled && hp->rope_scaling == ROPE_SCALING_YARN;

    return (struct op_rope_params){
        .type = b->m->arch->rope,
        .n_dims = swa ? hp->n_rot_swa : hp->n_rot,
        .base = swa ? hp->rope_base_swa : hp->rope_base,
        .freq_scale = scaled ? 1.0f / hp->rope_factor : 1.0f,
        .ext_factor = yarn ? hp->yarn_ext_factor : 0.0f,
        .attn_factor = plain ? 1.0f : hp->rope_attn_factor * (yarn ? hp->yarn_attn_factor : 1.0f),
        .beta_fast = hp->yarn_beta_fast,
        .beta_slow = hp->yarn_beta_slow,
        .n_ctx_orig = hp->n_ctx_orig,
    };
}

static bool has_windows(const struct hparams *hp)
{
    for (size_t i = 0; i < hp->n_layers; i++)
        if (hp->layers[i].kind & LAYER_WINDOW)
            return true;
    return false;
}

/* Those of the file, or of the two that it has the ones for so long a context. */
static const struct graph_weight *factors(const struct build *b, bool swa)
{
    const struct graph_weight *w = blk_weight(b, -1, TENSOR_ROPE_FREQS);

    if (swa && b->m->arch->swa_unscaled)
        return NULL;
    if (w->t.fmt)
        return w;
    return model_weight(
        b->m, -1, b->n_ctx > b->hp->n_ctx_orig ? TENSOR_ROPE_LONG : TENSOR_ROPE_SHORT, PART_WEIGHT);
}

static void make_tables(struct build *b)
{
    struct op_rope_params all = blk_rope_params(b, false), swa = blk_rope_params(b, true);

    b->rope = graph_rope_table(b->g, &all, factors(b, false));
    b->rope_swa = b->rope;
    if (has_windows(b->hp) && (swa.base != all.base || swa.freq_scale != all.freq_scale ||
                               swa.n_dims != all.n_dims || factors(b, true) != factors(b, false)))
        b->rope_swa = graph_rope_table(b->g, &swa, factors(b, true));
    all.inverse = swa.inverse = true;
    if (b->m->arch->rope_back) {
        b->rope_back[0] = graph_rope_table(b->g, &all, factors(b, false));
        b->rope_back[1] = graph_rope_table(b->g, &swa, factors(b, true));
    }
}

graph_value blk_embed(struct build *b)
{
    const struct graph_weight *positions = blk_weight(b, -1, TENSOR_POSITION_EMBD);
    const struct graph_weight *types = blk_weight(b, -1, TENSOR_TOKEN_TYPES);
    graph_value x;

    if (!b->m->arch->no_rope)
        make_tables(b);
    x = graph_embed(b->g, blk_weight(b, -1, TENSOR_TOKEN_EMBD), b->hp->embedding_scale);
    if (positions->t.fmt)
        x = graph_add(b->g, x, graph_embed_by(b->g, positions, OP_EMBED_POSITION));
    if (types->t.fmt)
        x = graph_add(b->g, x, graph_embed_by(b->g, types, OP_EMBED_FIRST));
    if (b->m->arch->outer_norms || b->m->arch->embed_norm)
        x = blk_norm(b, x, TENSOR_TOKEN_EMBD_NORM, -1);
    b->embedded = x;
    return x;
}

graph_value blk_add(struct build *b, graph_value x, graph_value y)
{
    return graph_add(b->g, x, y);
}

graph_value blk_last(struct build *b, int layer, graph_value x)
{
    return layer == (int)b->hp->n_layers - 1 ? graph_rows(b->g, x) : x;
}

graph_value blk_rmsnorm(struct build *b, graph_value x, enum tensor_name name, int layer)
{
    return graph_rmsnorm(b->g, x, blk_weight(b, layer, name), b->hp->rms_eps, 0);
}

graph_value blk_norm(struct build *b, graph_value x, enum tensor_name name, int layer)
{
    const struct graph_weight *w = blk_weight(b, layer, name);
    const struct graph_weight *bias = blk_bias(b, layer, name);

    if (!b->m->arch->layernorm)
        return graph_rmsnorm_bias(b->g, x, w, bias, b->hp->rms_eps);
    return graph_layernorm(b->g, x, w, bias, b->hp->norm_eps, 0);
}

graph_value blk_gate(struct build *b, enum op_act act, graph_value gate, graph_value y)
{
    return graph_glu(b->g, act, graph_like(b->g, gate, y), y);
}
