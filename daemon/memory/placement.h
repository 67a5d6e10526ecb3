/*
 * placement - what of a model stays in memory, in a budget.  Pure: sizes in,
 * decision out.
 *
 * Per token a dense weight is read once, an expert with the probability that the
 * router gives it, a row of a table almost never.  So rows go first, then
 * experts, then dense weights:
 *
 *     ALL      everything is resident
 *     ROWS     all but tables that are looked up row by row
 *     EXPERTS  dense weights resident, the rest of the budget is slots of experts,
 *              but for a table that takes next to nothing of it
 *     STREAM   some dense weights pass through a ring in the order of the
 *              layers, read while those before them compute; slots of experts
 *              from what is left
 *
 * Which dense weights stream is a fixed order of drops, round by round the
 * largest weight of every layer, layers spread: every layer then streams about
 * the same share, the drive is never idle, and the ring, which holds what a few
 * layers stream, stays small.  (A cyclic scan through a cache that evicts what
 * was used longest ago hits nothing.)
 *
 * Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum placement_mode { PLACEMENT_ALL, PLACEMENT_ROWS, PLACEMENT_EXPERTS, PLACEMENT_STREAM };
const char *placement_mode_name(enum placement_mode m); /* "all", "rows", "experts", "stream" */

#define PLACEMENT_DEPTH_MIN 2 /* one layer computes, one is read */
#define PLACEMENT_DEPTH     3

/* A dense weight that may stream. */
struct placement_drop {
    unsigned layer;    /* index among the layers */
    size_t home_bytes; /* what it takes when it is resident */
    size_t ring_bytes; /* … and in the ring */
    size_t bytes;      /* read for a token */
};

struct placement_input {
    size_t keep_bytes; /* dense, never dropped */
    size_t rows_bytes; /* tables, resident; 0: none */
    size_t rows_staging_bytes;
    const struct placement_drop *drops; /* in the order in which they go (placement_order) */
    size_t n_drops, n_layers;
    const size_t
        *unit_at; /* [n_units + 1]: bytes of one slot of each of the first i layers with experts */
    size_t n_units, n_experts; /* slots of a layer when all experts are resident */
    size_t landing_bytes;      /* where experts without a slot land */
    size_t book_bytes;         /* of experts: lists, counters */
};

struct placement {
    enum placement_mode mode;
    bool tables;      /* resident, all of them */
    size_t n_dropped; /* of the drops */
    size_t n_slots;   /* of all layers; slot i is one of layer i modulo n_units */
    size_t ring_depth, ring_slot_bytes;
    size_t stream_bytes; /* read through the ring for a token */
    size_t dense_bytes, slots_bytes, staging_bytes;
    size_t total_bytes;
};

/* Nothing but rows of tables is read once it is loaded. */
bool placement_is_whole(const struct placement *p);

/* Orders drops as the rounds want it: layer is set; n_layers as above. */
void placement_order(struct placement_drop *drops, size_t n, size_t n_layers, size_t *ret_order);

/* Bytes of the first n slots. */
size_t placement_slots_bytes(const struct placement_input *in, size_t n);
/* The quota of a layer: how many of the first n_slots are its. */
size_t placement_quota(const struct placement_input *in, size_t n_slots, size_t unit);

/* The best that fits into bytes; the floor when nothing does, which then is more than bytes. */
void placement_choose(const struct placement_input *in, size_t bytes, struct placement *ret);
/*
 * The same among EXPERTS and STREAM: what a model that has been cut can be.  tables:
 * they are there still, and may stay; once gone they do not come back.
 */
void placement_choose_cut(const struct placement_input *in, size_t bytes, bool tables,
                          struct placement *ret);
/*
 * Have tables that are not resident a place in that many bytes, with the buffers of their
 * rows until they have come, and with no fewer slots than n_slots?  *ret is that then.
 */
bool placement_tables_return(const struct placement_input *in, size_t bytes, size_t n_slots,
                             struct placement *ret);
/*
 * The best of those that fit and drop at least so many; false when none does.  A
 * ring for one more drop a layer may need more than the drop gives: from there
 * the way to fewer bytes is not always by fewer drops.
 */
bool placement_choose_behind(const struct placement_input *in, size_t n_dropped, size_t bytes,
                             struct placement *ret);
/* The least. */
void placement_floor(const struct placement_input *in, struct placement *ret);
