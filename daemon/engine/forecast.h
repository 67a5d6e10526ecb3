/*
 * forecast - how fast a model will run, from bytes and rates alone.  Pure.
 *
 * Decode, one token: the matrices at the rate of their format at one row, the
 * experts of a layer as the operation that they are, keys and values of the
 * context as matrices of their own, operations at what one costs, and what
 * misses from the drive: layer by layer while the hits are computed, or, for
 * dense weights that stream, all the while.  Prefill, a chunk at a time: the
 * same with as many rows, experts with the rows that fall to each.  What streams
 * is read once a chunk, all the while; experts that are not there are read when
 * their layer has chosen, while others of it compute, and the drive rests while
 * the next layer attends.
 *
 * Any thread.
 */
#pragma once

#include "daemon/memory/gauge.h"
#include "daemon/memory/placement.h"
#include "daemon/model/model.h"

#define FORECAST_DEPTH                                                                             \
    512 /* tokens before the one that is decoded, and of the prompt; fewer where the context has fewer */

enum forecast_limit { LIMIT_MEMORY, LIMIT_COMPUTE, LIMIT_DRIVE, LIMIT_WAIT };
const char *forecast_limit_name(enum forecast_limit l); /* "memory bandwidth", … "per-token wait" */

struct forecast_input {
    const struct model_work *work;
    const struct placement *placement;
    const struct gauge *gauge;
    size_t n_ctx, n_batch;
    double drive_rate;    /* bytes a second, of what streams; 0: not known */
    double slice_rate;    /* ... of experts' slices */
    double drive_wait_s;  /* that it takes to begin, when a layer misses an expert */
    double cpu_s_per_gib; /* of reading */
    double hit_rate;      /* of experts by decode, 0 to 1 */
    /* [n_experts]: how likely a row chooses the most wanted expert of a layer, the next, …; NULL: all alike */
    const double *chosen;
};

/* Of one token of decode, or of the whole prompt. */
struct forecast_side {
    double per_s;    /* tokens; 0: not known */
    double matrix_s; /* weights and caches, all that is computed */
    double ram_s;    /* of it, what memory alone would take */
    double read_s;   /* the drive is busy */
    double wait_s;   /* operations and layers that wait for each other */
    double read_bytes;
    enum forecast_limit limit;
};

/* Bytes that a token of decode takes, by where they come from: told even where no speed is known. */
struct forecast_tiers {
    double resident, streamed; /* weights that every token takes */
    double expert_hits, expert_misses;
    double kv;
};

struct forecast {
    size_t depth;
    struct forecast_tiers tiers;
    struct forecast_side decode, prefill;
};

void forecast(const struct forecast_input *in, struct forecast *ret);

/* Of n slots of units × experts, where nothing is known of the routing: as if it were nearly even. */
double forecast_even_hits(size_t n_slots, size_t n_units, size_t n_experts, size_t n_used);
/* Rates that it wants; mixtures: where they are put, MODEL_WORK_MIXTURES of them. */
struct gauge_wants forecast_wants(const struct model_work *w, struct gauge_mixture *mixtures);
