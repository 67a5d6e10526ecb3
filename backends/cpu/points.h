/*
 * points - blocks of the grid formats (iq1, iq2, iq3) as bytes, in plain C.
 *
 * A grid point is eight or four weights looked up at once; a machine word per
 * point is as good as a vector, and 32 or 64 of them lie side by side as the
 * 256 weights in order.  The vector tiers take them from there: magnitudes
 * with the sign bits apart, or the ternary values of iq1 with its shifts.
 *
 * Equal to what unpack.h makes of the block, which the tests of the kernels
 * hold it to.  Any thread; no block is out of any bound.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "backends/formats/blocks.h"
#include "backends/formats/iq_tables.h"

struct points256 {
    union {
        uint64_t eights[32];
        uint32_t fours[64];
        uint8_t bytes[256];
    };
    uint64_t minus[4]; /* bit i of word j: weight 64j + i is negative (iq1: its shift is) */
    union {
        int8_t scale[16]; /* of sixteen weights */
        uint16_t scale_pairs[8];
        uint32_t scale_fours[4];
        uint64_t scale_eights[2];
    };
};

static inline uint32_t points_u32(const uint8_t *p)
{
    uint32_t x;

    memcpy(&x, p, sizeof(x));
    return x;
}

static inline uint16_t points_u16(const uint8_t *p)
{
    uint16_t x;

    memcpy(&x, p, sizeof(x));
    return x;
}

/* Four times seven bits of signs, with their eighth. */
static inline uint64_t points_signs(uint32_t tail)
{
    return (uint64_t)iq_signs(tail) | (uint64_t)iq_signs(tail >> 7) << 8 |
           (uint64_t)iq_signs(tail >> 14) << 16 | (uint64_t)iq_signs(tail >> 21) << 24;
}

/* The four bits above them are the scale of 32. */
static inline void points_tail(uint32_t tail, size_t g, struct points256 *p)
{
    uint64_t signs = points_signs(tail);

    p->minus[g / 2] = g % 2 ? p->minus[g / 2] | signs << 32 : signs;
    p->scale_pairs[g] = (uint16_t)(0x0101 * (2 * (tail >> 28) + 1));
}

/* Four bytes with gaps between them: 0x44332211 -> 0x0044003300220011. */
static inline uint64_t points_spread(uint64_t x)
{
    x = (x | x << 16) & 0x0000ffff0000ffff;
    return (x | x << 8) & 0x00ff00ff00ff00ff;
}

/* Eight nibbles to eight odd numbers; many bytes in one word, since a loop over bytes ends in slow shuffles. */
static inline uint64_t points_nibbles(uint32_t scales)
{
    uint64_t x = points_spread(scales);

    x = (x & 0x000f000f000f000f) | (x & 0x00f000f000f000f0) << 4;
    return 2 * x + 0x0101010101010101;
}

static inline void points_iq2_xxs(const uint8_t *w, struct points256 *p)
{
    const uint8_t *qs = w + offsetof(struct block_iq2_xxs, qs);

    for (size_t g = 0; g < 8; g++, qs += 8) {
        for (size_t l = 0; l < 4; l++) {
            p->eights[4 * g + l] = iq2_xxs_grid[qs[l]];
        }
        points_tail(points_u32(qs + 4), g, p);
    }
}

static inline void points_iq2_xs(const uint8_t *w, struct points256 *p)
{
    const uint8_t *qs = w + offsetof(struct block_iq2_xs, qs);

    for (size_t j = 0; j < 4; j++) {
        uint64_t minus = 0;

        for (size_t l = 0; l < 8; l++, qs += 2) {
            uint32_t q = points_u16(qs);

            p->eights[8 * j + l] = iq2_xs_grid[q & 511];
            minus |= (uint64_t)iq_signs(q >> 9) << 8 * l;
        }
        p->minus[j] = minus;
    }
    p->scale_eights[0] = points_nibbles(points_u32(w + offsetof(struct block_iq2_xs, scales)));
    p->scale_eights[1] = points_nibbles(points_u32(w + offsetof(struct block_iq2_xs, scales) + 4));
}

static inline void points_iq2_s(const uint8_t *w, struct points256 *p)
{
    const struct block_iq2_s *b = (const void *)w;

    for (size_t k = 0; k < 32; k += 4) {
        uint32_t high = b->qh[k / 4];

        for (size_t l = 0; l < 4; l++) {
            p->eights[k + l] = iq2_s_grid[b->qs[k + l] | (high >> 2 * l & 3) << 8];
        }
    }
    memcpy(p->minus, b->signs, sizeof(p->minus));
    p->scale_eights[0] = points_nibbles(points_u32(b->scales));
    p->scale_eights[1] = points_nibbles(points_u32(b->scales + 4));
}

static inline void points_iq3_xxs(const uint8_t *w, struct points256 *p)
{
    const struct block_iq3_xxs *b = (const void *)w;

    for (size_t k = 0; k < 64; k++) {
        p->fours[k] = iq3_xxs_grid[b->qs[k]];
    }
    for (size_t g = 0; g < 8; g++)
        points_tail(points_u32(b->signs + 4 * g), g, p);
}

static inline void points_iq3_s(const uint8_t *w, struct points256 *p)
{
    const struct block_iq3_s *b = (const void *)w;
    uint64_t eight;

    for (size_t k = 0; k < 64; k += 8) {
        uint32_t high = b->qh[k / 8];

        for (size_t l = 0; l < 8; l++) {
            p->fours[k + l] = iq3_s_grid[b->qs[k + l] | (high >> l & 1) << 8];
        }
    }
    memcpy(p->minus, b->signs, sizeof(p->minus));
    eight = points_nibbles(points_u32(b->scales)); /* each for two sixteens */
    p->scale_eights[0] = points_spread(eight & 0xffffffff) * 0x0101;
    p->scale_eights[1] = points_spread(eight >> 32) * 0x0101;
}

static inline void points_iq1_s(const uint8_t *w, struct points256 *p)
{
    const uint8_t *qs = w + offsetof(struct block_iq1_s, qs);
    const uint8_t *qh = w + offsetof(struct block_iq1_s, qh);

    for (size_t g = 0; g < 8; g++) {
        uint32_t h = points_u16(qh + 2 * g);
        uint64_t minus = h & 0x8000 ? 0xffffffff : 0;

        for (size_t l = 0; l < 4; l++) {
            p->eights[4 * g + l] = iq1_grid[qs[4 * g + l] | (h >> 3 * l & 7) << 8];
        }
        p->minus[g / 2] = g % 2 ? p->minus[g / 2] | minus << 32 : minus;
        p->scale_pairs[g] = (uint16_t)(0x0101 * (2 * (h >> 12 & 7) + 1));
    }
}

static inline void points_iq1_m(const uint8_t *w, struct points256 *p)
{
    const struct block_iq1_m *b = (const void *)w;

    for (size_t j = 0; j < 4; j++) {
        uint64_t minus = 0;

        for (size_t l = 0; l < 8; l++) {
            uint32_t nibble = b->qh[4 * j + l / 2] >> l % 2 * 4;

            p->eights[8 * j + l] = iq1_grid[b->qs[8 * j + l] | (nibble & 7) << 8];
            minus |= (uint64_t)(nibble & 8 ? 255 : 0) << 8 * l;
        }
        p->minus[j] = minus;
    }
    for (size_t j = 0; j < 4; j++) {
        uint32_t x = points_u16(w + offsetof(struct block_iq1_m, scales) + 2 * j);

        x = (x & 7) | (x & 7 << 3) << 5 | (x & 7 << 6) << 10 | (x & 7 << 9) << 15;
        p->scale_fours[j] = 2 * x + 0x01010101;
    }
}

/* d of iq1_m lies in the high nibbles of its scales. */
static inline uint16_t points_half_iq1_m(const uint8_t *w)
{
    const uint8_t *s = w + offsetof(struct block_iq1_m, scales);

    return (uint16_t)(s[1] >> 4 | (s[3] & 0xf0) | (s[5] & 0xf0) << 4 | (s[7] & 0xf0) << 8);
}
