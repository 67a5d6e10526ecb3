/*
 * iq_tables - the fixed values that the iq, mxfp4 and nvfp4 formats look up.
 *
 * A grid point is 8 or 4 bytes, weight 0 in the lowest.  The tables are facts
 * of the file format (they were found once by their author's search and follow
 * no rule), kept in iq_tables.c as two or three bits per weight and widened by
 * the compiler.
 */
#pragma once

#include <stdint.h>

extern const uint64_t iq2_xxs_grid[256]; /* magnitudes 8, 25, 43 */
extern const uint64_t iq2_xs_grid[512];
extern const uint64_t iq2_s_grid[1024];
extern const uint32_t iq3_xxs_grid[256]; /* magnitudes 4, 12, 20 … 62 */
extern const uint32_t iq3_s_grid[512];   /* magnitudes 1, 3, 5 … 15 */
extern const uint64_t iq1_grid[2048];    /* int8 -1, 0, 1 */

extern const int8_t iq4_values[16];  /* ascending */
extern const int8_t fp4_doubled[16]; /* twice the E2M1 value of a code */

/* Seven sign bits; the eighth makes the number of minuses even.  The low 7 bits of code count. */
static inline uint8_t iq_signs(uint32_t code)
{
    code &= 127;
    return (uint8_t)(code | (uint32_t)__builtin_parity(code) << 7);
}

/* Magnitudes of a point with bit i of signs as the minus of weight i. */
static inline void iq_point8(uint64_t point, uint8_t signs, int8_t q[8])
{
    for (int i = 0; i < 8; i++) {
        int8_t magnitude = (int8_t)(point >> 8 * i);

        q[i] = (int8_t)(signs >> i & 1 ? -magnitude : magnitude);
    }
}

static inline void iq_point4(uint32_t point, int signs, int8_t q[4])
{
    for (int i = 0; i < 4; i++) {
        int8_t magnitude = (int8_t)(point >> 8 * i);

        q[i] = (int8_t)(signs >> i & 1 ? -magnitude : magnitude);
    }
}

/* Eight times (ternary + shift / 8). */
static inline void iq_point1(uint64_t point, int shift, int8_t q[8])
{
    for (int i = 0; i < 8; i++)
        q[i] = (int8_t)(8 * (int8_t)(point >> 8 * i) + shift);
}
