/*
 * gauge - how fast this machine computes: matrices of a format against rows of
 * activations, by the backend's own kernels, and what an operation costs that
 * has next to nothing to do.
 *
 * For each format that is asked for, once: seconds for a byte of weights at 1,
 * 8, 32 and 256 rows, over more weights than caches hold; about a third of
 * a second a format.  Attention likewise, over a cache, for one query and for
 * many.  Experts as one operation, since that is how a layer has them: small
 * matrices, rows brought together and shared out unevenly, a sum; a third of a
 * second for each kind of mixture.  All of it in three turns, of which each
 * figure's middle is told: what stalls the machine for a moment is no figure's
 * whole time.  Kept in the state folder for the machine
 * that it was measured on (processor, tier, threads), for GAUGE_KEPT_S.  The
 * fastest format at one row is what memory gives: the rate of RAM, as these
 * kernels read it.
 *
 * Thread: ENGINE.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/backend.h"
#include "common/err.h"

#define GAUGE_POINTS   4
#define GAUGE_MIXTURES 16                   /* kinds that are remembered */
#define GAUGE_KEPT_S   ((int64_t)24 * 3600) /* other work beside it slows it, so not for long */

extern const size_t gauge_rows[GAUGE_POINTS];

/* The experts of a layer, by what their time depends on.  Formats are those of gate, up and down. */
struct gauge_mixture {
    enum format_id formats[3];
    size_t width, ff; /* of the rows that go in and come out, and between */
    unsigned n_experts, n_used;
    enum op_act act;
    bool alone; /* act(gate) without up (op.h) */
};
bool gauge_mixture_same(const struct gauge_mixture *a, const struct gauge_mixture *b);

struct gauge_experts {
    struct gauge_mixture mixture;
    /* one expert takes seconds[p] with rows[p] rows, which ascend from 1 */
    double rows[GAUGE_POINTS], seconds[GAUGE_POINTS];
};

struct gauge {
    bool known[FORMAT_COUNT];
    double seconds[FORMAT_COUNT][GAUGE_POINTS]; /* for a byte of weights */
    bool attends[FORMAT_COUNT];
    double attention[FORMAT_COUNT][2]; /* for a byte of cache: of one query, of each further one */
    struct gauge_experts experts[GAUGE_MIXTURES]; /* the latest last */
    size_t n_mixtures;
    double op_s;       /* of an operation on a short row; 0: not measured */
    double row_byte_s; /* for a byte that operations on many rows read or write */
    char machine[192];
};

/*
 * Weights that kernels walk over.  A last-level cache of 32 MiB was seen to keep
 * enough of the least for a rate that is a sixth too high; of the most nothing.
 */
#define GAUGE_WEIGHTS       ((size_t)512 << 20)
#define GAUGE_WEIGHTS_LEAST ((size_t)128 << 20)

/* What is kept for this machine; everything unknown when there is nothing.  dir NULL or "": nothing is kept. */
void gauge_open(struct gauge *g, const char *dir, const struct backend_ops *ops,
                struct backend *be);

/* What somebody wants to know the speed of. */
struct gauge_wants {
    uint64_t formats; /* bits 1 << id, of matrices */
    enum format_id cache;
    const struct gauge_mixture *mixtures; /* [n_mixtures] */
    size_t n_mixtures;
    size_t weights_bytes; /* to walk over, GAUGE_WEIGHTS_LEAST or more; 0: that */
    /* Asked between two figures, some milliseconds apart; true breaks it off.  NULL: nobody is. */
    bool (*stop)(void *arg);
    void *stop_arg;
};

/* Bytes that gauge_measure allocates: what the caller reserves as staging. */
size_t gauge_staging_bytes(const struct gauge_wants *w);

/* Is something unknown of these, or of operations? */
bool gauge_lacks(const struct gauge *g, const struct gauge_wants *w);
/* Measures what is unknown, and keeps it.  ERR_NOMEM, ERR_CANCELLED (by stop), or what the backend says. */
int gauge_measure(struct gauge *g, const struct gauge_wants *w, const char *dir,
                  const struct backend_ops *ops, struct backend *be, struct err *err);

/* Seconds for that many bytes of weights against rows ≥ 1; 0 for a format that is not known. */
double gauge_seconds(const struct gauge *g, enum format_id f, double bytes, double rows);
/* … of attention over that many bytes of cache: queries = rows × heads that share a key. */
double gauge_attention_seconds(const struct gauge *g, enum format_id cache, double bytes,
                               double queries);
/* … of one expert with that many rows ≥ 1, in an operation of all that are wanted; 0: not known. */
double gauge_expert_seconds(const struct gauge *g, const struct gauge_mixture *m, double rows);
/* Bytes a second of the fastest format at one row; 0: nothing is known. */
double gauge_ram_rate(const struct gauge *g);
