/*
 * trace - which experts each token chose: recorded by the daemon, replayed
 * through the same policy by tests/bench/replay.
 *
 * File, little endian: "RNBDTRC1" · u32 layers with experts · u32 experts ·
 * u32 used by a token · u32 bytes of the model's name · the name · then one
 * record per token: u8 kind ('d' decode, 'p' prefill) · u16 ids[layers][used],
 * TRACE_NONE where a layer chose less.  A file that ends inside a record ends
 * before it.
 *
 * Thread: one per writer or reader.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define TRACE_NONE        UINT16_MAX
#define TRACE_LAYERS_MAX  4096u
#define TRACE_EXPERTS_MAX 4096u

struct trace_shape {
    unsigned n_layers;  /* with experts */
    unsigned n_experts; /* of the widest */
    unsigned n_used;
    char model[128];
};

struct trace_writer;

/* Creates or empties path. */
int trace_writer_open(const char *path, const struct trace_shape *shape, struct trace_writer **ret,
                      struct err *err);
/* The choice of one layer (counted from 0 among those with experts) for the token in progress. */
void trace_writer_layer(struct trace_writer *t, unsigned layer, const int32_t *ids, unsigned n);
/* Ends the token; one for which no layer has chosen is none. */
int trace_writer_token(struct trace_writer *t, bool prefill, struct err *err);
uint64_t trace_writer_tokens(const struct trace_writer *t);
/* The first error since open is given here if a token did not. */
int trace_writer_close(struct trace_writer *t, struct err *err);

/* A whole trace in memory. */
struct trace {
    struct trace_shape shape;
    size_t n_tokens;
    uint8_t *prefill; /* [n_tokens] */
    uint16_t *ids;    /* [n_tokens][n_layers][n_used] */
};

/* ERR_FORMAT for what is no trace or names experts that there are not; max_bytes bounds the file. */
int trace_read(const char *path, size_t max_bytes, struct trace *ret, struct err *err);
void trace_clear(struct trace *t);
static inline const uint16_t *trace_ids(const struct trace *t, size_t token, unsigned layer)
{
    return t->ids + (token * t->shape.n_layers + layer) * t->shape.n_used;
}
