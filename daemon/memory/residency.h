/*
 * residency - which extents of a model are in which pool, and where.
 *
 * An extent is pinned while a graph may touch it, and only then; an unpinned
 * one may be gone at the next call.  The bytes of resident extents are charged
 * to the ledger in true sizes.  Weights are owned memory (huge pages, read by
 * direct I/O): nothing is mapped from the file, so a file that shrinks or
 * vanishes is an error of a read, never a SIGBUS, and the page cache holds no
 * second copy.
 *
 * What is resident says the placement (placement.h).  Three kinds of extents
 * come by three ways:
 *
 *     whole     residency_pin: from its home, or out of the ring, in which
 *               the weights of the next layers are read while this one computes
 *     slices    when not all experts are resident, residency_experts_*: those
 *               that a router has chosen, hits at once, misses as they land
 *     rows      residency_rows, when the table is not resident
 *
 * Homes lie in the order of drops and slots in the order of ranks, so whatever
 * is resident is the beginning of a region, and a budget that shrinks cuts the
 * end off (resize.c).
 *
 * Thread: ENGINE.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/backend.h"
#include "common/err.h"
#include "daemon/gguf/gguf.h"
#include "daemon/memory/curve.h"
#include "daemon/memory/curve_profile.h"
#include "daemon/memory/extent.h"
#include "daemon/memory/ledger.h"
#include "daemon/memory/placement.h"
#include "daemon/memory/reader.h"

struct residency;

/* Matrices of one expert: gate, up, down. */
#define RESIDENCY_PARTS 3

/* g, l, be stay valid until residency_destroy. */
struct residency *residency_create(const struct gguf *g, struct ledger *l,
                                   const struct backend_ops *ops, struct backend *be,
                                   const char *who);
void residency_destroy(struct residency *r); /* gives every byte back */

/* Reads by another engine (faults on request, buffered only); before residency_load. */
void residency_set_engine(struct residency *r, const struct reader_faults *engine);
/*
 * Where the figures of drives are kept: what streams is then read as its drive
 * likes it, which is measured at first use (calibrate.h).  NULL or "": as any
 * drive would.  Before residency_load.
 */
void residency_set_state_dir(struct residency *r, const char *dir);
/* Rows that are looked up at once, and experts that a token uses, at most; before all that follows. */
void residency_set_batch(struct residency *r, size_t max_rows, unsigned n_used);

/*
 * The clock and the major faults of this process, which the cliff guard looks at
 * (guard.h); tests put their own in place.
 */
typedef void residency_probe_fn(void *arg, int64_t *ret_us, uint64_t *ret_major_faults);
void residency_set_probe(struct residency *r, residency_probe_fn *probe, void *arg);

/* Declares an extent; all are declared before residency_load.  Returns its id. */
extent_id residency_add(struct residency *r, const struct extent *e);

/* What residency_load will reserve with all resident: weights, and staging while it runs. */
void residency_need(struct residency *r, size_t *ret_weights_bytes, size_t *ret_staging_bytes);

/* The latter alone, of any placement. */
size_t residency_loading_bytes(const struct residency *r);

/* The best placement in that many bytes; the floor, which is more, when there is none. */
void residency_plan(struct residency *r, size_t bytes, struct placement *ret);
void residency_floor(struct residency *r, struct placement *ret);
/* For residency_load; without it everything is resident. */
void residency_set_placement(struct residency *r, const struct placement *p);

/* done and total in bytes; called from the ENGINE thread, several times a second at most. */
typedef void residency_progress_fn(void *arg, size_t done_bytes, size_t total_bytes);

/* Reserves, and reads what stays.  ERR_NOMEM, ERR_IO (names the tensor), ERR_CANCELLED; on failure nothing is held. */
int residency_load(struct residency *r, residency_progress_fn *progress, void *arg,
                   const _Atomic bool *cancel, struct err *err);

/*
 * The bytes of an extent: 64-byte aligned at home, in the ring as its place in
 * the file is.  ERR_IO when it streams and its read has failed.
 */
int residency_pin(struct residency *r, extent_id id, const void **ret_data, struct err *err);
void residency_unpin(struct residency *r, extent_id id);

/* -- experts ---------------------------------------------------------------------- */

/* Do the slices of this extent come by residency_experts_*? */
bool residency_is_sliced(const struct residency *r, extent_id id);
/* Bytes from expert to expert of a pinned extent of slices. */
size_t residency_stride(const struct residency *r, extent_id id);

/* What a batch has chosen in one layer. */
struct residency_choice {
    extent_id parts[RESIDENCY_PARTS]; /* in the order in which the addresses are wanted */
    size_t offsets[RESIDENCY_PARTS];  /* in a slice: two matrices may share a tensor */
    const int32_t *ids;               /* [rows][n_used] */
    size_t stride;                    /* elements from row to row */
    size_t rows;
    unsigned n_used;
    bool decode; /* one token; not the wanted row of a prompt */
};

/*
 * Where all experts are there: is it of interest what a batch has chosen of this
 * extent?  What is noted serves a plan for less memory, a cut, and whoever asks
 * (curve, heat, trace).  It would cost a token a percent, so of decode it is some
 * tokens in a row out of many; all of them while a trace is recorded.
 */
#define RESIDENCY_WATCH_TOKENS 64  /* in a row … */
#define RESIDENCY_WATCH_EVERY  512 /* … of so many; the first are watched */
bool residency_is_watched(const struct residency *r, extent_id id);
void residency_note(struct residency *r, const struct residency_choice *c);

/* Begins the reads of what is missing. */
void residency_experts_begin(struct residency *r, const struct residency_choice *c);
/*
 * Experts that are there and were not given yet: *ret_data is [n_experts], with
 * addresses for these alone.  What the call before gave may move now.  Waits
 * until there is one; 0: all were given.  On failure the choice has ended.
 */
int residency_experts_next(struct residency *r, const void *(**ret_data)[RESIDENCY_PARTS],
                           struct err *err);
/* Ends a choice early. */
void residency_experts_drop(struct residency *r);

/* -- rows ------------------------------------------------------------------------- */

/* Are rows of this extent got by residency_rows? */
bool residency_is_by_row(const struct residency *r, extent_id id);
/* *ret_rows: row ids[i] at i, close together; valid until the next call.  n ≤ max_rows. */
int residency_rows(struct residency *r, extent_id id, const int32_t *ids, size_t n,
                   const void **ret_rows, struct err *err);

/* -- live change (resize.c); nothing is pinned ------------------------------------- */

/* The least that it can be resized to now: the floor, or what it holds when that is less. */
size_t residency_floor_bytes(struct residency *r);
/* Bytes it holds in the ledger. */
size_t residency_held_bytes(const struct residency *r);
/*
 * Holds at most that many bytes from now on: they are given back before it
 * returns.  Grows into more as it runs: slots at once, dense weights one by one.
 * ERR_NOMEM, with what it needs, below the floor; nothing has changed then.
 */
int residency_resize(struct residency *r, size_t bytes, struct err *err);
/*
 * Between two layers: goes on growing; makes again what a change of the budget
 * could not (ERR_NOMEM: this batch has failed, a later one may not).
 */
int residency_between(struct residency *r, struct err *err);
/* Do dense weights stream? */
bool residency_streams(const struct residency *r);
/* Have weights that are not charged for yet a place to come to? */
bool residency_comes_home(const struct residency *r);
/* Between parts of a long computation: takes what has landed, and the drive goes on. */
void residency_look(struct residency *r);

/* -- what is known ----------------------------------------------------------------- */

struct residency_stats {
    size_t extents, resident_extents;
    size_t bytes, resident_bytes;
    size_t bytes_read; /* since load began, over-read included */
    double read_seconds;
    struct placement placement;
    /* since it was loaded; counts and times are zero when all is resident */
    uint64_t wanted_bytes;       /* of experts and of what streams */
    uint64_t hit_bytes;          /* of those, in memory when they were wanted */
    uint64_t uses, hits;         /* of experts, by decode alone */
    uint64_t over_bytes;         /* read, and not wanted: blocks */
    uint64_t ahead_bytes;        /* read before its layer began … */
    uint64_t ahead_unused_bytes; /* … and given up before that */
    uint64_t wait_us;            /* compute stood still for reads */
    uint64_t busy_us;            /* something was being read … */
    uint64_t reader_bytes;       /* … which were these */
    const char *reader;          /* "io_uring", "pread"; NULL: none needed */
    bool direct;
    size_t slots_cap;    /* fewer slots than fit, because more made tokens slower; 0: no such cap */
    double drive_rate;   /* bytes a second, of the first part's drive as it was measured, for reads
                          like this model's (calibrate_rate); 0: it was not */
    double drive_wait_s; /* … that it takes to begin after a silence */
    const char *drive_why; /* one sentence; "" */
};
/* Waits for what is read ahead: while nothing is computed, no clock of reading runs on. */
void residency_settle(struct residency *r);
void residency_stats(const struct residency *r, struct residency_stats *ret);

/* Of one layer with experts. */
#define RESIDENCY_MISSED 17
struct residency_layer {
    int layer;
    unsigned n_experts, quota, resident;
    size_t slot_bytes;
    uint64_t wanted_bytes, hit_bytes, read_bytes;
    uint64_t over_bytes; /* read, and not wanted: blocks */
    uint64_t wait_us;
    /* choices of decode that missed so many experts; the last: or more */
    uint64_t missed[RESIDENCY_MISSED];
};

/* Of the dense weights of a layer that have streamed. */
struct residency_streamed {
    int layer; /* −1: outside the layers */
    uint64_t wanted_bytes, read_bytes, wait_us;
    uint64_t ahead_bytes, ahead_unused_bytes; /* as of all layers; experts are not read ahead */
};
size_t residency_n_streamed(const struct residency *r);
/* False when that one never did. */
bool residency_streamed(const struct residency *r, size_t i, struct residency_streamed *ret);

size_t residency_n_layers(const struct residency *r);
void residency_layer(const struct residency *r, size_t i, struct residency_layer *ret);
/* Of an expert of that layer; reads are of the time since the load. */
#define RESIDENCY_NEVER UINT64_MAX
struct residency_expert {
    bool resident;
    double heat; /* uses, decayed */
    /*
     * Decoded since its last use, a prompt's chunk counting as one; RESIDENCY_NEVER.
     * Where all experts are there it is the last use that was seen: of decode only watched
     * tokens are, so it may have been used since, in one of those after them.
     */
    uint64_t unused_tokens;
    uint64_t reads;      /* begun, with those that were given up */
    uint64_t read_bytes; /* landed, with the blocks around it */
};
void residency_expert(const struct residency *r, size_t i, unsigned e,
                      struct residency_expert *ret);
/* What other sizes of the cache would hit; −1 without experts, 0 while too little was decoded. */
int residency_curve(const struct residency *r, struct curve_point ret[CURVE_POINTS]);
/* All of it, for a plan; false when too little is known. */
bool residency_curve_profile(const struct residency *r, struct curve_profile *ret);
/* Records the choices of every token from now on; path NULL ends it.  model: its name. */
int residency_trace(struct residency *r, const char *path, const char *model, struct err *err);
