/*
 * encode_grid - encoders for the formats whose groups of weights are points of
 * a fixed grid.
 *
 * Plain nearest-point search: each group tries a few scales, each 8 (or 4)
 * weights all points.  Slow (about a microsecond a weight), for tests and
 * model tools; see encode.h for the rules on NaN.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct grid {
    const uint64_t *points8; /* magnitudes; one of the two is set */
    const uint32_t *points4;
    int n;
    int top;     /* largest magnitude */
    bool even;   /* signs must have even parity per 8 */
    int group;   /* weights that share a scale: 16 or 32 */
    int steps;   /* scales are unit * (2s + 1), s < steps */
    float share; /* units in d */
};

struct grid_codes {
    uint16_t d;         /* f16 */
    uint8_t s[16];      /* per group */
    uint8_t signs[32];  /* per 8 weights, bit i = minus of weight i */
    uint16_t index[64]; /* per 8 (points8: 32 of them) or 4 weights */
};

/* 256 weights as unit * (2s + 1) * ±point. */
void encode_grid(const struct grid *g, const float x[256], struct grid_codes *ret);

struct grid1_codes {
    uint16_t d;        /* f16 of eight units */
    uint8_t s[16];     /* per group */
    uint8_t minus[32]; /* per 8 weights: the shift is -1 */
    uint16_t index[32];
};

/* 256 weights as unit * (2s + 1) * (8 * ternary ± 1), s < 8; one shift per shift_group (8 or 32). */
void encode_grid1(const float x[256], int group, int shift_group, struct grid1_codes *ret);
