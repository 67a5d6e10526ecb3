/*
 * loaded - a model on the CPU with a ledger of its own, for programs that
 * compute with one and have nothing to do without it: what fails ends the
 * process (die.h).
 */
#pragma once

#include "daemon/model/model.h"
#include "tests/support/cpu_backend.h"

struct loaded {
    struct cpu_backend cpu;
    struct backend_ops *spy; /* cpu.ops with another run(); NULL: none */
    struct ledger *ledger;
    struct model *m;
    size_t n_vocab;
};

struct loaded_how {
    unsigned threads;
    const char *tier; /* as for cpu_backend_open() */
    size_t bytes;     /* the budget; 0: all the machine has */
    /* In place of the CPU's run(), which it may call. */
    int (*run)(struct backend *be, const struct op *ops, size_t n, const struct op_run *run,
               void *scratch, struct err *err);
};

struct loaded loaded_open(const char *path, const struct model_options *o,
                          const struct loaded_how *how);
void loaded_close(struct loaded *l); /* its ledger must be back at its start */

/* model_eval(): the logits of those rows. */
const float *must_eval(struct model *m, const int32_t *ids, size_t n, const int32_t *rows,
                       size_t n_rows);
