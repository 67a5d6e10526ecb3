/*
 * stream_rig - a model in a budget of its own, and the digest of its logits: what
 * check_stream compares.  Ends the process with one sentence when something fails
 * that is not what is checked.
 */
#pragma once

#include "daemon/model/model.h"
#include "tests/support/cpu_backend.h"

struct rig {
    struct cpu_backend cpu;
    struct ledger *ledger;
    struct model *m;
    size_t n_vocab;
};

/* Ways that were tried. */
struct ways {
    size_t passed, failed;
};

_Noreturn void rig_die(const char *what, const struct err *err);

/* bytes 0: all the machine has. */
struct rig rig_open(const char *path, const struct model_options *o, size_t bytes,
                    unsigned threads);
void rig_close(struct rig *r); /* its ledger must be back at its start */

/* The i-th id of every text here. */
int32_t rig_id_at(const struct rig *r, size_t i);

/* Logits of n positions from the present end on, chained row by row from h on; batches of at most 64. */
uint64_t rig_digest(struct rig *r, size_t n, size_t batch, uint64_t h);

/*
 * The same while the budget is cut to the floor, raised, cut again; counts as failed when what is
 * held or charged passes it.  all: bytes with everything resident.
 */
uint64_t rig_digest_live(struct rig *r, size_t all, size_t n, struct ways *ways);

/* Every family of the daemon in tiny files (families.c); only: part of a name, or NULL for all. */
void check_families(const char *only, struct ways *ways);
