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
 * Placement of this version: everything resident (mode ALL).  A model that does
 * not fit is refused with its sum.
 *
 * Thread: ENGINE.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "backends/backend.h"
#include "common/err.h"
#include "daemon/gguf/gguf.h"
#include "daemon/memory/extent.h"
#include "daemon/memory/ledger.h"
#include "daemon/memory/stream.h"

struct residency;

/* g, l, be stay valid until residency_destroy. */
struct residency *residency_create(const struct gguf *g, struct ledger *l,
                                   const struct backend_ops *ops, struct backend *be,
                                   const char *who);
void residency_destroy(struct residency *r); /* gives every byte back */

/* Reads by another engine (faults on request, buffered only); before residency_load. */
void residency_set_engine(struct residency *r, const struct stream_engine *engine);

/* Declares an extent; all are declared before residency_load.  Returns its id. */
extent_id residency_add(struct residency *r, const struct extent *e);

/* What residency_load will reserve: weights, and staging while it runs. */
void residency_need(const struct residency *r, size_t *ret_weights_bytes,
                    size_t *ret_staging_bytes);

/* done and total in bytes; called from the ENGINE thread, several times a second at most. */
typedef void residency_progress_fn(void *arg, size_t done_bytes, size_t total_bytes);

/* Reserves and reads all extents.  ERR_NOMEM, ERR_IO (names the tensor), ERR_CANCELLED; on failure nothing is held. */
int residency_load(struct residency *r, residency_progress_fn *progress, void *arg,
                   const _Atomic bool *cancel, struct err *err);

/* The bytes of an extent, 64-byte aligned.  Cannot fail in mode ALL after load. */
int residency_pin(struct residency *r, extent_id id, const void **ret_data, struct err *err);
void residency_unpin(struct residency *r, extent_id id);

struct residency_stats {
    size_t extents, resident_extents;
    size_t bytes, resident_bytes;
    size_t bytes_read; /* since load began, over-read included */
    double read_seconds;
};
void residency_stats(const struct residency *r, struct residency_stats *ret);
