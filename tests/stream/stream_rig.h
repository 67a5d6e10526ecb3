/*
 * stream_rig - the digest of the logits of a model in a budget of its own: what
 * check_stream compares.  What fails and is not what is checked ends the process
 * (die.h).
 */
#pragma once

#include "tests/support/die.h"
#include "tests/support/loaded.h"

/* Ways that were tried. */
struct ways {
    size_t passed, failed;
};

/* The i-th id of every text here. */
int32_t rig_id_at(const struct loaded *r, size_t i);

/* Logits of n positions from the present end on, chained row by row from h on; batches of at most 64. */
uint64_t rig_digest(struct loaded *r, size_t n, size_t batch, uint64_t h);

/*
 * The same while the budget is cut to the floor, raised, cut again; counts as failed when what is
 * held or charged passes it.  all: bytes with everything resident.
 */
uint64_t rig_digest_live(struct loaded *r, size_t all, size_t n, struct ways *ways);

/* Every family of the daemon in tiny files (families.c); only: part of a name, or NULL for all. */
void check_families(const char *only, struct ways *ways);
