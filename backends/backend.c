/* The list of backends, made from their folders; see backend.h. */
#include "backends/backend.h"

#include <string.h>

#include "common/alloc.h"

#define BACKEND(name) extern const struct backend_ops backend_##name;
#include "gen/backends.def"
#undef BACKEND

static const struct backend_ops *const all[] = {
#define BACKEND(name) &backend_##name,
#include "gen/backends.def"
#undef BACKEND
};

const struct backend_ops *backend_by_name(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (strcmp(all[i]->name, name) == 0)
            return all[i];
    return NULL;
}

static int probe_one(const struct backend_ops *ops, struct device *list, int cap, int n,
                     struct err *err)
{
    int r = n < cap ? ops->probe(list + n, cap - n, err) : 0;

    return r < 0 ? r : n + r;
}

int backend_probe(struct device *ret_list, int cap, struct err *err)
{
    const struct backend_ops *cpu = backend_by_name("cpu");
    int n = cpu ? probe_one(cpu, ret_list, cap, 0, err) : 0;

    for (size_t i = 0; n >= 0 && i < ARRAY_LEN(all); i++)
        if (all[i] != cpu)
            n = probe_one(all[i], ret_list, cap, n, err);
    return n;
}
