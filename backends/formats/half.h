/*
 * half - the small floating-point types of the file format, to and from f32.
 *
 * All in software and exact, so that a machine without the instructions gives
 * the bits of one that has them: to f32 nothing is ever rounded (a signalling
 * NaN becomes quiet, as hardware does), from f32 rounds to nearest, ties to
 * even.  Subnormals count; FTZ and DAZ must be off.
 */
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline float f32_of_bits(uint32_t bits)
{
    float f;

    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline uint32_t f32_bits(float f)
{
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    return bits;
}

/* IEEE binary16: 1 + 5 + 10 bits. */
static inline float f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    uint32_t rest = h & 0x7fff;

    if (rest > 0x7c00)
        return f32_of_bits(sign | 0x7fc00000 | rest << 13);
    if (rest == 0x7c00)
        return f32_of_bits(sign | 0x7f800000);
    if (rest >= 0x0400)
        return f32_of_bits(sign | ((rest << 13) + (112u << 23)));
    return f32_of_bits(sign | f32_bits((float)(int)rest * 0x1p-24f));
}

static inline uint16_t f32_to_f16(float f)
{
    uint32_t sign = f32_bits(f) >> 16 & 0x8000;
    uint32_t rest = f32_bits(f) & 0x7fffffff;

    if (rest > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (rest >> 13 & 0x3ff));
    if (rest >= 0x477ff000) /* 65520, half-way past the largest */
        return (uint16_t)(sign | 0x7c00);
    if (rest >= 0x38800000) /* 2^-14, the smallest normal */
        return (uint16_t)(sign | (rest - (112u << 23) + 0xfff + (rest >> 13 & 1)) >> 13);
    /* One ulp of 0.5 is 2^-24, the step of the subnormals: the addition rounds. */
    return (uint16_t)(sign | (f32_bits(f32_of_bits(rest) + 0.5f) - 0x3f000000));
}

/* The upper half of an f32. */
static inline float bf16_to_f32(uint16_t h)
{
    return f32_of_bits((uint32_t)h << 16);
}

static inline uint16_t f32_to_bf16(float f)
{
    uint32_t bits = f32_bits(f);

    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Half of the OCP MX scale 2^(e - 127): e = 0, 1 are subnormal, e = 255 is 2^127 (no NaN). */
static inline float e8m0_half_to_f32(uint8_t e)
{
    return f32_of_bits(e < 2 ? 0x00200000u << e : (uint32_t)(e - 1) << 23);
}

/*
 * Half of an unsigned 4 + 3 bit float (bias 7) as an integer times 2^-10; the
 * sign bit is ignored, 0x7f (NaN) counts as zero.  At most 15 << 14.
 */
static inline int32_t ue4m3_half_steps(uint8_t x)
{
    int exp = x >> 3 & 15;
    int man = x & 7;

    if (x == 0x7f)
        return 0;
    return exp == 0 ? man : (8 + man) << (exp - 1);
}

static inline float ue4m3_half_to_f32(uint8_t x)
{
    return (float)ue4m3_half_steps(x) * 0x1p-10f;
}
