/*
 * act - the layouts of a row of activations that meets quantised weights.
 *
 * Values are in −127 … 127 (never −128: the saturation proofs of the vector
 * kernels need it).  For one block with a = max |x|: d = a / 127 and q =
 * round-to-nearest-even(x * (127 / a)), both single IEEE operations, so every
 * tier gives the same bytes; a block of zeros, or one whose 127 / a is not
 * finite, has d = 0 and q = 0.  A block with an infinity or a NaN has d = NaN
 * (0x7fc00000) and q = 0: what went wrong shows in the result, on every tier.
 * (Compare |x| as integers: the order of floats, with NaN on top.)
 *
 * The ORDER of bytes here is the canonical one; a tier may repack a tile of
 * columns for its own GEMM (kernels.h, pack).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "backends/formats/format.h"

struct act_q8_32 {
    int8_t q[32];
    float d;
    int32_t sum; /* of q */
};
_Static_assert(sizeof(struct act_q8_32) == 40, "act_q8_32");

struct act_q8_256 {
    int8_t q[256];
    int16_t sums[16]; /* of 16 q each */
    float d;
    uint32_t pad[7]; /* zero; blocks stay on cache lines */
};
_Static_assert(sizeof(struct act_q8_256) == 320, "act_q8_256");

/* Elements that a block of activations covers; a row is padded with zeros up to a whole block. */
static inline size_t act_block_elems(enum act_kind a)
{
    return a == ACT_Q8_256 ? 256 : a == ACT_Q8_32 ? 32 : 1;
}

/* Bytes of one row of n activations. */
static inline size_t act_row_bytes(enum act_kind a, size_t n)
{
    switch (a) {
    case ACT_Q8_32: return (n + 31) / 32 * sizeof(struct act_q8_32);
    case ACT_Q8_256: return (n + 255) / 256 * sizeof(struct act_q8_256);
    default: return n * sizeof(float);
    }
}
