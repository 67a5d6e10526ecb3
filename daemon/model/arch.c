/* The list of families, made from the folder arch/.  See arch.h. */

#include <string.h>

#include "daemon/model/arch.h"

#define ARCH(name) extern const struct arch arch_##name;
#include "gen/archs.def"
#undef ARCH

static const struct arch *const archs[] = {
#define ARCH(name) &arch_##name,
#include "gen/archs.def"
#undef ARCH
};

const struct arch *arch_find(struct view name)
{
    for (size_t i = 0; i < ARRAY_LEN(archs); i++)
        if (view_is(name, archs[i]->name))
            return archs[i];
    return NULL;
}

size_t arch_names_like(struct view name, struct str *out)
{
    size_t n = MIN(name.len, (size_t)3);

    for (size_t i = 0; i < ARRAY_LEN(archs); i++)
        if (n && strncmp(archs[i]->name, name.p, n) == 0)
            str_addf(out, "%s%s", out->len ? ", " : "", archs[i]->name);
    return ARRAY_LEN(archs);
}

int arch_check_experts(struct hparams *hp, const char *name, struct err *err)
{
    if (!hp->n_expert)
        return err_set(err, ERR_FORMAT, "'%s.expert_count' is 0, but '%s' needs experts", name,
                       name);
    if (!hp->n_ff_exp)
        hp->n_ff_exp = hp->n_ff / hp->n_expert_used;
    return 0;
}

int arch_check_mixture(struct hparams *hp, const char *name, enum expert_gating gating,
                       struct err *err)
{
    if (!hp->expert_gating)
        hp->expert_gating = gating;
    if (hp->expert_scale == 0.0f)
        hp->expert_scale = 1.0f; /* some converters write 0 for none */
    if (arch_check_experts(hp, name, err) < 0)
        return -ERR_FORMAT;
    if (!hp->n_ff_shexp)
        hp->n_ff_shexp = hp->n_shared * hp->n_ff_exp;
    return 0;
}

unsigned arch_kind_delta(const struct hparams *hp, int layer)
{
    unsigned every = hp->full_interval ? hp->full_interval : 4;
    bool recurrent = hp->has[KEY_RECURRENT_LAYERS] ? hp->layers[layer].recurrent
                                                   : ((unsigned)layer + 1) % every != 0;
    unsigned kind = recurrent ? LAYER_RECURRENT : LAYER_ATTENTION;

    return kind | (hp->n_expert ? (unsigned)LAYER_MOE : 0);
}

int arch_check_delta(struct hparams *hp, const char *name, struct err *err)
{
    if (hp->ssm_inner != (uint64_t)hp->ssm_state * hp->ssm_rank)
        return err_set(err, ERR_FORMAT, "'%s.ssm.inner_size' is %u, but %u heads of %u make %llu",
                       name, hp->ssm_inner, hp->ssm_rank, hp->ssm_state,
                       (unsigned long long)hp->ssm_state * hp->ssm_rank);
    if (hp->ssm_rank % hp->ssm_groups != 0)
        return err_set(err, ERR_FORMAT,
                       "%u heads ('%s.ssm.time_step_rank') cannot share %u keys evenly",
                       hp->ssm_rank, name, hp->ssm_groups);
    hp->conv_rows = hp->ssm_conv - 1;
    hp->conv_width = 2 * hp->ssm_state * hp->ssm_groups + hp->ssm_inner;
    hp->state_heads = hp->ssm_rank;
    hp->state_rows = hp->state_cols = hp->ssm_state;
    return 0;
}

int arch_check_sections(const struct hparams *hp, const char *name, struct err *err)
{
    for (uint32_t pair = 0; pair < hp->n_rot / 2; pair++)
        if (pair >= 3 * hp->rope_sections[pair % 3])
            return err_set(err, ERR_UNSUPPORTED,
                           "'%s.rope.dimension_sections' gives pair %u a fourth position; only "
                           "time, height and width are supported",
                           name, pair);
    return 0;
}

int arch_check_text_sections(struct hparams *hp, const char *name, struct err *err)
{
    const uint32_t *s = hp->rope_sections;

    if (!hp->has[KEY_ROPE_SECTIONS] || !(s[0] || s[1] || s[2] || s[3]))
        return 0;
    if (!s[0] || !s[1] || s[3])
        return err_set(err, ERR_UNSUPPORTED,
                       "'%s.rope.dimension_sections' is %u, %u, %u, %u; sections for time, height "
                       "and width are supported, and none for a fourth position",
                       name, s[0], s[1], s[2], s[3]);
    hp->rope_halves = true;
    return 0;
}

void arch_scales(struct hparams *hp)
{
    hp->logit_scale = 1.0f / hp->logit_scale;
    if (!(hp->residual_scale > 0.0f))
        hp->residual_scale = 1.0f;
    if (!(hp->embedding_scale > 0.0f))
        hp->embedding_scale = 1.0f;
}

int arch_check_mamba2(struct hparams *hp, const char *name, struct err *err)
{
    if (!hp->ssm_groups)
        hp->ssm_groups = 1;
    if (hp->ssm_inner % hp->ssm_rank != 0 || hp->ssm_rank % hp->ssm_groups != 0)
        return err_set(err, ERR_FORMAT,
                       "'%s' has a state of %u values in %u heads and %u groups, which do not "
                       "divide each other",
                       name, hp->ssm_inner, hp->ssm_rank, hp->ssm_groups);
    hp->conv_rows = hp->ssm_conv - 1;
    hp->conv_width = hp->ssm_inner + 2 * hp->ssm_groups * hp->ssm_state;
    hp->ssm_in_width = hp->ssm_inner + hp->conv_width + hp->ssm_rank;
    hp->state_heads = hp->ssm_rank;
    hp->state_rows = hp->ssm_state;
    hp->state_cols = hp->ssm_inner / hp->ssm_rank;
    return 0;
}

int arch_check_mamba(struct hparams *hp, const char *name, struct err *err)
{
    if (hp->ssm_state > OP_SSM_EACH)
        return err_set(err, ERR_UNSUPPORTED, "'%s.ssm.state_size' is %u; up to %d are supported",
                       name, hp->ssm_state, OP_SSM_EACH);
    hp->conv_rows = hp->ssm_conv - 1;
    hp->conv_width = hp->ssm_inner;
    hp->ssm_in_width = 2 * hp->ssm_inner;
    hp->state_heads = 1;
    hp->state_rows = hp->ssm_state;
    hp->state_cols = hp->ssm_inner;
    return 0;
}

unsigned arch_kind_by_heads(const struct hparams *hp, int layer)
{
    unsigned kind = hp->layers[layer].n_kv_heads ? LAYER_ATTENTION : LAYER_RECURRENT;

    return kind | (hp->n_expert && (uint32_t)layer >= hp->n_dense_lead ? (unsigned)LAYER_MOE : 0);
}

unsigned arch_kind_shared(const struct hparams *hp, int layer)
{
    bool shared = (uint32_t)layer + hp->n_shared_kv >= hp->n_layers;

    return (shared ? LAYER_SHARED : LAYER_ATTENTION) | (hp->n_expert ? (unsigned)LAYER_MOE : 0);
}

int arch_check_shared(const struct hparams *hp, const char *name, struct err *err)
{
    unsigned owners = 0, sharers = 0;

    for (uint32_t i = 0; i < hp->n_layers; i++) {
        unsigned bit = hp->layers[i].kind & LAYER_WINDOW ? 2 : 1;

        if (hp->layers[i].kind & LAYER_SHARED)
            sharers |= bit;
        else
            owners |= bit;
    }
    if (sharers & ~owners)
        return err_set(err, ERR_FORMAT,
                       "'%s.attention.shared_kv_layers' is %u: no earlier layer has keys and "
                       "values for the last ones to share",
                       name, hp->n_shared_kv);
    return 0;
}

unsigned arch_kind_recurrent(const struct hparams *hp, int layer)
{
    (void)hp;
    (void)layer;
    return LAYER_RECURRENT;
}

unsigned arch_kind_one_part(const struct hparams *hp, int layer)
{
    const struct hparams_layer *y = &hp->layers[layer];

    if (y->n_ff)
        return LAYER_MLP | (hp->n_expert ? (unsigned)LAYER_MOE : 0);
    return y->n_kv_heads ? LAYER_ATTENTION : LAYER_RECURRENT;
}

int arch_check_norm_eps(struct hparams *hp, const char *name, struct err *err)
{
    if (hp->has[KEY_RMS_EPS])
        return 0;
    hp->rms_eps = hp->norm_eps;
    return hp->has[KEY_NORM_EPS]
               ? 0
               : err_set(err, ERR_FORMAT, "'%s' has neither of the two norm epsilons", name);
}

void arch_size_shortconv(struct hparams *hp)
{
    hp->conv_rows = hp->ssm_conv - 1;
    hp->conv_width = hp->n_embd;
}

int arch_check_encoder(const struct hparams *hp, const char *name, struct err *err)
{
    if (hp->pooling != POOLING_NONE)
        return 0;
    return err_set(err, ERR_UNSUPPORTED,
                   "'%s' makes embeddings, but the file has no '%s.pooling_type' that says how",
                   name, name);
}
