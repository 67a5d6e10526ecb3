/* The list of families, made from the folder arch/.  See arch.h. */

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

void arch_names(struct str *out)
{
    for (size_t i = 0; i < ARRAY_LEN(archs); i++)
        str_addf(out, "%s%s", i ? ", " : "", archs[i]->name);
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
