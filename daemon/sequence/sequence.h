/*
 * sequence - one mutable timeline of tokens: KV caches (and later recurrent
 * state) of one model, filled from position 0.
 *
 * All of it is reserved when the sequence is made, in true sizes, so that a
 * context that was promised can be filled; pages are touched as they are used.
 * The ids that made the present state are kept: the longest common prefix of a
 * new prompt need not be computed again.
 *
 * Thread: ENGINE.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/backend.h"
#include "common/err.h"
#include "daemon/memory/ledger.h"

struct sequence;

/* What a layer keeps.  n_kv_heads 0: nothing. */
struct sequence_layer {
    unsigned n_kv_heads;
    unsigned k_dim; /* per head */
    unsigned v_dim;
    unsigned index_dim; /* of keys for choosing positions, one a token; 0: none */
    bool v_in_k;        /* values are the first v_dim of each key, and kept once */
};

struct sequence_layout {
    const struct sequence_layer *layers;
    size_t n_layers;
    const struct format *k_fmt;
    const struct format *v_fmt;
    size_t n_ctx;
};

/* Caches of a layer, in the layout of op.h, without data. */
struct tensor sequence_shape_k(const struct sequence_layout *l, size_t layer);
struct tensor sequence_shape_v(const struct sequence_layout *l, size_t layer);
struct tensor sequence_shape_index(const struct sequence_layout *l, size_t layer);

/* Bytes that sequence_create reserves under ACCOUNT_KV (page-rounded). */
size_t sequence_bytes(const struct sequence_layout *layout, const struct backend_ops *ops,
                      const struct backend *be);

int sequence_create(const struct sequence_layout *layout, struct ledger *l,
                    const struct backend_ops *ops, struct backend *be, const char *who,
                    struct sequence **ret, struct err *err);
void sequence_destroy(struct sequence *s);

size_t sequence_n_ctx(const struct sequence *s);
size_t sequence_length(const struct sequence *s); /* positions filled */
const int32_t *sequence_ids(const struct sequence *s);

/* Forgets all from position n on. */
void sequence_truncate(struct sequence *s, size_t n);
/* How many ids at the start of ids[n] are already there. */
size_t sequence_common(const struct sequence *s, const int32_t *ids, size_t n);
/* Called by the executor after a batch has been computed into the caches. */
void sequence_append(struct sequence *s, const int32_t *ids, size_t n);

/* Caches of a layer, in the layout of op.h; data is bound. */
struct tensor sequence_k(const struct sequence *s, size_t layer);
struct tensor sequence_v(const struct sequence *s, size_t layer);
struct tensor sequence_index(const struct sequence *s, size_t layer);
