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
        return err_set(err, ERR_FORMAT,
                       "'%s.expert_count' is 0, but '%s' has experts in every layer", name, name);
    if (!hp->n_ff_exp)
        hp->n_ff_exp = hp->n_ff / hp->n_expert_used;
    return 0;
}
