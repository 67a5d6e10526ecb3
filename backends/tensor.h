/*
 * tensor - a shape, strides and a place in memory; no arithmetic, no ownership.
 *
 * n[0] is the contiguous dimension ("elements of a row"), as in GGUF; stride[0]
 * is the block size of the format and rows start stride[1] bytes apart.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "backends/formats/format.h"

struct tensor {
    const struct format *fmt; /* NULL: no tensor */
    void *data;               /* NULL until bound */
    size_t n[4];              /* unused dimensions are 1 */
    size_t stride[4];         /* bytes */
};

/* A contiguous tensor of n0 × n1 × n2 × n3. */
struct tensor tensor_make(const struct format *fmt, void *data, size_t n0, size_t n1, size_t n2,
                          size_t n3);
size_t tensor_rows(const struct tensor *t);  /* n1 * n2 * n3 */
size_t tensor_bytes(const struct tensor *t); /* from the first byte to the last */

static inline void *tensor_row(const struct tensor *t, size_t row)
{
    return (char *)t->data + row * t->stride[1];
}

static inline float *tensor_f32(const struct tensor *t, size_t row)
{
    return (float *)tensor_row(t, row);
}
