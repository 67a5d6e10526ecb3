/*
 * unpack - a block of quantised weights as plain integers: what every decoder
 * and every scalar twin starts from.
 *
 * One struct for all formats.  With i the weight and j = i / 16 its group:
 *
 *   one scale     w[i] = q[i] * d              q4_0 q5_0 q8_0 iq4_nl mxfp4 q1_0 q2_0
 *   and offset    w[i] = q[i] * d + m          q4_1 q5_1
 *   scales        w[i] = d * sc[j] * q[i]      q3_k q6_k iq* tq* nvfp4
 *   and minima    w[i] = d * sc[j] * q[i] - m * mins[j]      q2_k q4_k q5_k
 *
 * evaluated from left to right in f32, no step contracted.  Formats with a
 * scale per 32 weights fill two equal groups.  A factor that the format holds
 * as a fraction is in d: q and sc are always whole numbers.
 *
 * Any thread; no block, however hostile, is out of any bound.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct unpacked {
    int8_t q[256];
    int32_t sc[16];
    int32_t mins[16];
    float d;
    float m;
};

/* Fills the fields that its line above names, for one block. */
typedef void unpack_fn(const void *block, struct unpacked *u);

unpack_fn unpack_q4_0, unpack_q4_1, unpack_q5_0, unpack_q5_1, unpack_q8_0;
unpack_fn unpack_iq4_nl, unpack_mxfp4, unpack_nvfp4, unpack_q1_0, unpack_q2_0;
unpack_fn unpack_q2_k, unpack_q3_k, unpack_q4_k, unpack_q5_k, unpack_q6_k;
unpack_fn unpack_iq1_s, unpack_iq1_m, unpack_iq2_xxs, unpack_iq2_xs, unpack_iq2_s;
unpack_fn unpack_iq3_xxs, unpack_iq3_s, unpack_iq4_xs, unpack_tq1_0, unpack_tq2_0;

struct format;

/* n weights of f through its unpack, by the four lines above. */
void unpack_one(const struct format *f, unpack_fn *unpack, const void *blocks, float *out,
                size_t n);
void unpack_offset(const struct format *f, unpack_fn *unpack, const void *blocks, float *out,
                   size_t n);
void unpack_scales(const struct format *f, unpack_fn *unpack, const void *blocks, float *out,
                   size_t n);
void unpack_minima(const struct format *f, unpack_fn *unpack, const void *blocks, float *out,
                   size_t n);
