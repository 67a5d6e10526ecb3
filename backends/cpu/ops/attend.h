/*
 * attend - partial results of attention, as ATTENTION and its sisters keep and merge
 * them: m, l and o of some queries over one chunk of keys (kernels.h).
 */
#pragma once

#include "backends/cpu/cpu.h"

struct partial {
    float *m, *l, *o; /* o: [n_q][v_dim] */
};

/*
 * The n keys (or values) of a head that a list names, ascending: where they lie
 * if they lie together, else copies in `to`.
 */
const char *keys_gather(const struct tensor *cache, size_t head, const int32_t *list, size_t n,
                        char *to, size_t *ret_stride);

/* The ops have the parameters of attention. */
size_t partial_bytes(const struct op *op, size_t n_q);
struct partial partial_at(char *at, size_t n_q);

/* Query i of acc takes in query j of a chunk; the first chunk is copied. */
void partial_merge(const struct op *op, const struct part *p, const struct partial *acc, size_t i,
                   const struct partial *chunk, size_t j, bool is_first);
/* The output of query i, of a row and a head; sinks as in op.h, or none. */
void partial_finish(const struct op *op, const struct part *p, const struct partial *acc, size_t i,
                    size_t r, size_t head, const struct tensor *sinks);
