/*
 * Within gauge: where kernels are measured, and how.
 *
 * Thread: ENGINE.
 */
#pragma once

#include "daemon/memory/gauge.h"

#define GAUGE_ROWS_MAX ((size_t)256)
#define GAUGE_OPS_MAX  ((size_t)512)
#define GAUGE_TURNS    3

struct gauge_bench {
    const struct backend_ops *ops;
    struct backend *be;
    struct op *list; /* [GAUGE_OPS_MAX] to build operations in */
    char *weights;   /* no number among them that is odd */
    size_t weights_bytes;
    char *rows; /* in, then out */
    size_t rows_bytes;
    void *scratch;
    size_t scratch_bytes;
};

/*
 * Seconds for one of these operations, by runs of at_once that walk over all of
 * them: the mean, which is what a model gets that runs beside whatever else
 * runs here.
 */
int gauge_time_ops(const struct gauge_bench *b, const struct op *ops, size_t n, size_t at_once,
                   size_t rows, size_t pos, double *ret_s, struct err *err);

/* Is the mixture among those measured? */
const struct gauge_experts *gauge_find(const struct gauge *g, const struct gauge_mixture *m);
/* Adds it; where there is no room, in the place of the oldest. */
void gauge_add(struct gauge *g, const struct gauge_experts *e);
/* Unknown it stays where the backend cannot compute it. */
int gauge_measure_mixture(struct gauge *g, const struct gauge_bench *b,
                          const struct gauge_mixture *m, struct err *err);

/* The middle of each figure; the turns know the same things, in the same order. */
void gauge_settle(struct gauge *g, const struct gauge turns[GAUGE_TURNS]);

void gauge_save(const struct gauge *g, const char *dir);
