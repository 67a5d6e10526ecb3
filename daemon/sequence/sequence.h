/*
 * sequence - one mutable timeline of tokens: KV caches and recurrent state of
 * one model, filled from position 0.
 *
 * All of it is reserved when the sequence is made, in true sizes, so that a
 * context that was promised can be filled; pages are touched as they are used.
 * The ids that made the present state are kept: the longest common prefix of a
 * new prompt need not be computed again.
 *
 * Keys and values of a position stay as they are, so any position can be gone
 * back to.  Where a window bounds what a layer sees, its cache is a ring that
 * holds the window, the largest batch and SEQUENCE_BACK positions more: one can
 * go back by as many, or to the start.  A recurrent state is one for all of the past: a sequence that has
 * some can only go back to where a checkpoint was kept, or to the start.
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

#define SEQUENCE_BACK 1024

/* What a layer keeps; zeros: nothing of the kind.  Recurrent state is f32, and zero at the start. */
struct sequence_layer {
    unsigned n_kv_heads;
    unsigned k_dim; /* per head */
    unsigned v_dim;
    unsigned index_dim; /* of keys for choosing positions, one a token; 0: none */
    unsigned window;    /* positions that a later one sees, itself among them; 0: all */
    unsigned group;     /* positions that share one more key of k_dim, and an index key; 0: none */
    bool v_in_k;        /* values are the first v_dim of each key, and kept once */
    unsigned conv_rows; /* inputs that a short convolution looks back at */
    unsigned conv_width;
    unsigned state_heads; /* recurrent state in the layout of op.h */
    unsigned state_rows;  /* per head */
    unsigned state_cols;
};

struct sequence_layout {
    const struct sequence_layer *layers;
    size_t n_layers;
    const struct format *k_fmt;
    const struct format *v_fmt;
    size_t n_ctx;
    size_t n_batch;       /* rows of a batch, at most; for the layers with a window */
    size_t n_checkpoints; /* that can be kept at a time; 0 where no layer has recurrent state */
};

/* Caches of a layer, in the layout of op.h, without data. */
struct tensor sequence_shape_k(const struct sequence_layout *l, size_t layer);
struct tensor sequence_shape_v(const struct sequence_layout *l, size_t layer);
struct tensor sequence_shape_groups(const struct sequence_layout *l, size_t layer);
struct tensor sequence_shape_index(const struct sequence_layout *l, size_t layer);
struct tensor sequence_shape_conv(const struct sequence_layout *l, size_t layer);
struct tensor sequence_shape_state(const struct sequence_layout *l, size_t layer);

/* Bytes that sequence_create reserves under ACCOUNT_KV (page-rounded). */
size_t sequence_bytes(const struct sequence_layout *layout, const struct backend_ops *ops,
                      const struct backend *be);
/* And under ACCOUNT_STATE: recurrent state and its checkpoints. */
size_t sequence_state_bytes(const struct sequence_layout *layout, const struct backend_ops *ops,
                            const struct backend *be);

int sequence_create(const struct sequence_layout *layout, struct ledger *l,
                    const struct backend_ops *ops, struct backend *be, const char *who,
                    struct sequence **ret, struct err *err);
void sequence_destroy(struct sequence *s);

size_t sequence_n_ctx(const struct sequence *s);
size_t sequence_length(const struct sequence *s); /* positions filled */
const int32_t *sequence_ids(const struct sequence *s);

/* Has it recurrent state, so that checkpoints say where it can go back to? */
bool sequence_recurrent(const struct sequence *s);
/* The last position that is no later than n and can be gone back to: n itself without recurrent state or windows. */
size_t sequence_rewind_point(const struct sequence *s, size_t n);
/* Forgets all from sequence_rewind_point(n) on; returns the length that is left. */
size_t sequence_truncate(struct sequence *s, size_t n);
/* Keeps the recurrent state of the present length; the oldest of too many checkpoints goes. */
void sequence_checkpoint(struct sequence *s);
/* A batch of n rows has failed half-way: recurrent state goes back to the last checkpoint; the rest is as before. */
void sequence_spoiled(struct sequence *s, size_t n);
/* How many ids at the start of ids[n] are already there. */
size_t sequence_common(const struct sequence *s, const int32_t *ids, size_t n);
/* Called by the executor after a batch has been computed into the caches. */
void sequence_append(struct sequence *s, const int32_t *ids, size_t n);

/* Caches of a layer, in the layout of op.h; data is bound. */
struct tensor sequence_k(const struct sequence *s, size_t layer);
struct tensor sequence_v(const struct sequence *s, size_t layer);
struct tensor sequence_groups(const struct sequence *s, size_t layer); /* their own keys */
struct tensor sequence_index(const struct sequence *s, size_t layer);
/* Inputs of the short convolution, the latest last; the recurrent state (op.h). */
struct tensor sequence_conv(const struct sequence *s, size_t layer);
struct tensor sequence_state(const struct sequence *s, size_t layer);
