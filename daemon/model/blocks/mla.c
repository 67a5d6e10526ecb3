/*
 * Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1): keys
 * and values of all heads are made from one latent per token, beside one
 * rotated key that they share.  Where the file has the two parts of the
 * expansion apart, they are absorbed into the queries and the output: the
 * latent is then the only key and value, and all that is kept.  See blocks.h.
 */

#include <math.h>

#include "daemon/model/blocks/blocks.h"

/*
 * DeepSeek's magnitudes of YaRN: that of the rotation, and one that the softmax
 * has squared.  The op itself gives the rotation the usual one, which is taken
 * off here.
 */
static void yarn_magnitudes(struct hparams *hp, bool one_magnitude)
{
    bool yarn = hp->rope_scaling == ROPE_SCALING_YARN && hp->rope_factor > 1.0f;
    double log_factor = yarn ? log((double)hp->rope_factor) : 0.0;
    double usual = 1.0 + 0.1 * log_factor;
    double all = 1.0 + (double)hp->yarn_log_multiplier * log_factor;
    double rotation = one_magnitude && hp->has[KEY_YARN_LOG_MULTIPLIER] ? 1.0 : usual / all;

    hp->yarn_attn_factor = (float)(rotation / usual);
    all *= rotation;
    hp->attention_scale = (float)(all * all / sqrt((double)hp->k_mla));
}

int blk_mla_check(struct hparams *hp, const char *name, bool one_magnitude, struct err *err)
{
    hp->absorbed = hp->has[KEY_KEY_LENGTH_MLA] && hp->has[KEY_VALUE_LENGTH_MLA];
    if (!hp->absorbed) {
        hp->k_mla = hp->head_dim;
        hp->v_mla = hp->v_dim;
    }
    if (hp->k_mla <= hp->n_rot)
        return err_set(err, ERR_FORMAT,
                       "RoPE over %u values leaves none of a head of %u to '%s' without it",
                       hp->n_rot, hp->k_mla, name);
    if (hp->absorbed && (hp->head_dim != hp->n_kv_lora + hp->n_rot || hp->v_dim != hp->n_kv_lora))
        return err_set(err, ERR_FORMAT,
                       "'%s' has keys of %u and values of %u, but a latent of %u and %u rotated "
                       "values make %u and %u",
                       name, hp->head_dim, hp->v_dim, hp->n_kv_lora, hp->n_rot,
                       hp->n_kv_lora + hp->n_rot, hp->n_kv_lora);
    for (uint32_t i = 0; i < hp->n_layers; i++)
        if (hp->layers[i].kind & LAYER_ATTENTION &&
            hp->layers[i].n_kv_heads != (hp->absorbed ? 1 : hp->layers[i].n_heads))
            return err_set(err, ERR_FORMAT, "'%s.attention.head_count_kv' is %u in layer %u; %s",
                           name, hp->layers[i].n_kv_heads, i,
                           hp->absorbed ? "a latent for all heads is one KV head"
                                        : "each head has keys of its own");
    yarn_magnitudes(hp, one_magnitude);
    return 0;
}

static graph_value queries(struct build *b, int layer, graph_value x, graph_value *ret_latent)
{
    *ret_latent = GRAPH_NONE;
    if (!b->hp->n_q_lora)
        return graph_matmul1(b->g, x, blk_weight(b, layer, TENSOR_ATTN_Q), NULL);
    x = graph_matmul1(b->g, x, blk_weight(b, layer, TENSOR_ATTN_Q_A), NULL);
    *ret_latent = blk_rmsnorm(b, x, TENSOR_ATTN_Q_A_NORM, layer);
    return graph_matmul1(b->g, *ret_latent, blk_weight(b, layer, TENSOR_ATTN_Q_B), NULL);
}

/* One head of keys, which are values too. */
static graph_value attend_latent(struct build *b, int layer, graph_value q, graph_value latent,
                                 graph_value rotated, const struct blk_mla *opt)
{
    const struct hparams *hp = b->hp;
    unsigned n_rot = hp->n_rot, nope = hp->k_mla - n_rot;
    struct graph_attention a = {.n_heads = hp->layers[layer].n_heads,
                                .n_kv_heads = 1,
                                .head_dim = hp->head_dim,
                                .v_dim = hp->v_dim,
                                .scale = hp->attention_scale};
    graph_value part = graph_slice(b->g, q, 0, nope, hp->k_mla), y;

    part = graph_heads(b->g, part, blk_weight(b, layer, TENSOR_ATTN_K_B));
    q = graph_join(b->g, part, hp->n_kv_lora, graph_slice(b->g, q, nope, n_rot, hp->k_mla), n_rot);
    if (opt->temperature != 0.0f)
        q = graph_temperature(b->g, q, opt->temperature, opt->step, 0);
    graph_kv_store(b->g, graph_join(b->g, latent, hp->n_kv_lora, rotated, n_rot), GRAPH_NONE, 1,
                   hp->head_dim, hp->v_dim);
    y = hp->indexer ? graph_sparse(b->g, q, b->chosen, &a) : graph_attention(b->g, q, &a);
    return graph_heads(b->g, blk_last(b, layer, y), blk_weight(b, layer, TENSOR_ATTN_V_B));
}

/* Keys and values of every head, expanded from the latent before they are kept. */
static graph_value attend_expanded(struct build *b, int layer, graph_value q, graph_value latent,
                                   graph_value rotated, const struct blk_mla *opt)
{
    const struct hparams *hp = b->hp;
    unsigned n_heads = hp->layers[layer].n_heads, nope = hp->k_mla - hp->n_rot;
    unsigned both = nope + hp->v_mla;
    struct graph_attention a = {.n_heads = n_heads,
                                .n_kv_heads = n_heads,
                                .head_dim = hp->k_mla,
                                .v_dim = hp->v_mla,
                                .scale = hp->attention_scale};
    graph_value kv = graph_matmul1(b->g, latent, blk_weight(b, layer, TENSOR_ATTN_KV_B), NULL);
    graph_value k = graph_slice(b->g, kv, 0, nope, both);

    k = graph_join(b->g, k, nope, rotated, hp->n_rot);
    if (opt->temperature != 0.0f)
        q = graph_temperature(b->g, q, opt->temperature, opt->step, 0);
    graph_kv_store(b->g, k, graph_slice(b->g, kv, nope, hp->v_mla, both), n_heads, hp->k_mla,
                   hp->v_mla);
    return blk_last(b, layer, graph_attention(b->g, q, &a));
}

graph_value blk_mla(struct build *b, int layer, graph_value x, const struct blk_mla *opt)
{
    const struct hparams *hp = b->hp;
    enum op_rope rope = b->m->arch->rope;
    unsigned width = hp->n_kv_lora + hp->n_rot;
    graph_value q_latent, latent, rotated, y;
    graph_value q = queries(b, layer, x, &q_latent);
    graph_value kv = graph_matmul1(b->g, x, blk_weight(b, layer, TENSOR_ATTN_KV_A), NULL);

    if (hp->layers[layer].indexer)
        b->chosen = blk_indexer(b, layer, x, q_latent);
    if (!b->m->arch->no_rope)
        graph_rope_part(b->g, q, b->rope, rope, hp->n_rot, hp->k_mla, hp->k_mla - hp->n_rot);
    latent = graph_slice(b->g, kv, 0, hp->n_kv_lora, width);
    latent = blk_rmsnorm(b, latent, TENSOR_ATTN_KV_A_NORM, layer);
    rotated = graph_slice(b->g, kv, hp->n_kv_lora, hp->n_rot, width);
    if (!b->m->arch->no_rope)
        graph_rope(b->g, rotated, b->rope, rope, hp->n_rot, hp->n_rot);
    y = hp->absorbed ? attend_latent(b, layer, q, latent, rotated, opt)
                     : attend_expanded(b, layer, q, latent, rotated, opt);
    return graph_matmul1(b->g, y, blk_weight(b, layer, TENSOR_ATTN_OUT), NULL);
}
