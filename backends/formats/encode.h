/*
 * encode - what the encoders of the formats share: rounding with a bound, and
 * the search for a scale.
 *
 * rnbd encodes for its KV cache, for tests and for models made by its tools;
 * quality counts, speed hardly.  All of it is plain f32 in one order, so an
 * encoded row is the same on every machine.  NaN and infinities encode to
 * something bounded, never to undefined behaviour.
 */
#pragma once

#include <math.h>
#include <stdint.h>

#include "backends/formats/half.h"

/* Nearest integer to v within [lo, hi]; NaN gives lo. */
static inline int encode_round(float v, int lo, int hi)
{
    if (!(v > (float)lo))
        return lo;
    return v >= (float)hi ? hi : (int)lrintf(v);
}

/* 1 / d, or 0 where that is not finite (d zero, tiny or NaN): everything then rounds to zero. */
static inline float encode_inverse(float d)
{
    float inv = 1.0f / d;

    return isfinite(inv) ? inv : 0.0f;
}

/* Scale as f16, kept finite. */
static inline uint16_t encode_f16(float d)
{
    return f32_to_f16(isnan(d) ? 0.0f : fminf(fmaxf(d, -65504.0f), 65504.0f));
}

/* The largest |x[i]|, with NaN and infinities left out. */
float encode_max_abs(const float *x, int n);

/*
 * The d for which d * q[i], q in [lo, hi] (lo <= 0 < hi), is nearest to x in
 * squares: candidates round the two scales that map the extreme of x to an
 * end of the range, each refined once by least squares.  0 for zeros.
 */
float encode_scale(const float *x, int n, int lo, int hi);

/*
 * The same for d * q[i] - *ret_min, q in [0, hi], d and min >= 0: the form of
 * q2_k, q4_k, q5_k.
 */
float encode_scale_min(const float *x, int n, int hi, float *ret_min);

/* And for d * q[i] + *ret_offset with an offset of any sign: q4_1, q5_1. */
float encode_scale_offset(const float *x, int n, int hi, float *ret_offset);

/* The same against a sorted table of 16 values: d * values[q]. */
float encode_scale_table(const float *x, int n, const int8_t values[16]);

/* Index of the entry of the sorted table nearest to v. */
int encode_nearest16(float v, const int8_t values[16]);

/* The code of the 4-bit float nearest to v / 2 (the order of fp4_doubled). */
int encode_fp4(float v);
