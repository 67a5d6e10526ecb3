/* See loaded.h. */
#include "tests/support/loaded.h"

#include <stdlib.h>

#include "common/alloc.h"
#include "tests/support/die.h"

struct loaded loaded_open(const char *path, const struct model_options *o,
                          const struct loaded_how *how)
{
    struct loaded l = {.cpu = cpu_backend_open(how->threads, how->tier), .ledger = ledger_create()};
    const struct backend_ops *ops = l.cpu.ops;
    struct model_info info;
    struct err err = {0};

    if (how->run) {
        l.spy = xmemdup(ops, sizeof *ops);
        l.spy->run = how->run;
        ops = l.spy;
    }
    if (how->bytes && ledger_set_budget(l.ledger, POOL_RAM, how->bytes, &err) < 0)
        die("%s: %s", path, err.text);
    if (model_open(path, &l.m, &err) < 0 ||
        model_load(l.m, o, l.ledger, ops, l.cpu.be, NULL, NULL, NULL, &err) < 0)
        die("%s: %s", path, err.text);
    model_info(l.m, &info);
    l.n_vocab = info.n_vocab;
    return l;
}

void loaded_close(struct loaded *l)
{
    model_close(l->m);
    if (ledger_used(l->ledger, POOL_RAM) != 0)
        die("the ledger is not back at its start");
    ledger_destroy(l->ledger);
    cpu_backend_close(&l->cpu);
    free(l->spy);
}

const float *must_eval(struct model *m, const int32_t *ids, size_t n, const int32_t *rows,
                       size_t n_rows)
{
    const float *logits;
    struct err err = {0};

    if (model_eval(m, ids, n, rows, n_rows, NULL, &logits, &err) < 0)
        die("%s", err.text);
    return logits;
}
