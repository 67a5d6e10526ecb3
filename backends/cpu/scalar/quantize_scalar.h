/*
 * quantize_scalar - one block of activations to int8, the rule of act.h.
 */
#pragma once

#include <math.h>

#include "backends/cpu/kernels.h"
#include "backends/formats/half.h"

/* n values, then zeros up to block; returns d. */
static inline float quantize_block(const float *x, size_t n, int8_t *q, size_t block)
{
    uint32_t max = 0; /* bits of the largest |x|: integers order as floats do, NaN above all */
    float inv;

    for (size_t i = 0; i < n; i++) {
        uint32_t a = f32_bits(x[i]) & 0x7fffffff;

        max = a > max ? a : max;
    }
    memset(q, 0, block);
    if (max >= 0x7f800000)
        return f32_of_bits(0x7fc00000);
    inv = 127.0f / f32_of_bits(max);
    if (isinf(inv))
        return 0;
    /* |x * inv| <= 127 * (1 + 2^-23): never rounds to more than 127. */
    for (size_t i = 0; i < n; i++)
        q[i] = (int8_t)lrintf(x[i] * inv);
    return f32_of_bits(max) / 127.0f;
}
