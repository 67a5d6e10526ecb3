/*
 * blocks - every packed block layout of GGUF, on one page.
 *
 * Structs are packed: a block may lie at any address, and no field is ever
 * read through a wider pointer.  All fields are little-endian, as in the file;
 * d, m and dmin are f16 bits unless said otherwise.  "Nibbles, halves" means:
 * the low nibbles of a byte run hold the first half of its weights, the high
 * nibbles the second.
 *
 * The layouts are facts of the file format: formats.md has the sizes, the
 * comments here say what the decoders in NAME.c spell out.
 */
#pragma once

#include <stdint.h>

#define BLOCK(name, bytes) _Static_assert(sizeof(struct block_##name) == (bytes), #name)
#define PACKED             __attribute__((packed))

/* -- 32 weights ------------------------------------------------------------------- */

/* w = d * (q - 8) */
struct PACKED block_q4_0 {
    uint16_t d;
    uint8_t qs[16]; /* nibbles, halves */
};
BLOCK(q4_0, 18);

/* w = d * q + m */
struct PACKED block_q4_1 {
    uint16_t d;
    uint16_t m;
    uint8_t qs[16]; /* nibbles, halves */
};
BLOCK(q4_1, 20);

/* w = d * (q - 16) */
struct PACKED block_q5_0 {
    uint16_t d;
    uint8_t qh[4];  /* bit i = bit 4 of weight i */
    uint8_t qs[16]; /* bits 0 … 3: nibbles, halves */
};
BLOCK(q5_0, 22);

/* w = d * q + m */
struct PACKED block_q5_1 {
    uint16_t d;
    uint16_t m;
    uint8_t qh[4];
    uint8_t qs[16];
};
BLOCK(q5_1, 24);

/* w = d * q */
struct PACKED block_q8_0 {
    uint16_t d;
    int8_t qs[32];
};
BLOCK(q8_0, 34);

/* w = d * iq4_values[q] */
struct PACKED block_iq4_nl {
    uint16_t d;
    uint8_t qs[16]; /* nibbles, halves */
};
BLOCK(iq4_nl, 18);

/* w = 2^(e - 127) * fp4(q) = e8m0_half(e) * fp4_doubled[q] */
struct PACKED block_mxfp4 {
    uint8_t e;
    uint8_t qs[16]; /* nibbles, halves */
};
BLOCK(mxfp4, 17);

/* -- 64 and 128 weights -------------------------------------------------------------- */

/* w = ue4m3(d[i / 16]) * fp4(q); groups of 16 have their own 8 bytes of nibbles, halves */
struct PACKED block_nvfp4 {
    uint8_t d[4];
    uint8_t qs[32];
};
BLOCK(nvfp4, 36);

/* w = d * (q - 1), q in 0 … 3, four to a byte from the low bits up */
struct PACKED block_q2_0 {
    uint16_t d;
    uint8_t qs[16];
};
BLOCK(q2_0, 18);

/* w = bit ? d : -d, eight to a byte from the low bit up */
struct PACKED block_q1_0 {
    uint16_t d;
    uint8_t qs[16];
};
BLOCK(q1_0, 18);

/* -- 256 weights, scales of scales ------------------------------------------------------ */

/* w = d * sc * q - dmin * m, sc and m per 16 */
struct PACKED block_q2_k {
    uint8_t scales[16]; /* low nibble sc, high nibble m */
    uint8_t qs[64]; /* 2 × 32 bytes; bits 2j, 2j + 1 of a run hold its weights 32j … 32j + 31 */
    uint16_t d;
    uint16_t dmin;
};
BLOCK(q2_k, 84);

/* w = d * (sc - 32) * (q - 4), sc per 16 */
struct PACKED block_q3_k {
    uint8_t hmask[32]; /* bit j of byte l: bit 2 of weight 32j + l */
    uint8_t qs[64];    /* bits 0, 1, as in q2_k */
    uint8_t
        scales[12]; /* 16 × 6 bits: nibbles of bytes 0 … 7, then pairs of bits of bytes 8 … 11 */
    uint16_t d;
};
BLOCK(q3_k, 110);

/* w = d * sc * q - dmin * m, sc and m per 32 */
struct PACKED block_q4_k {
    uint16_t d;
    uint16_t dmin;
    uint8_t scales[12]; /* 8 × (6 + 6) bits: k_scale() and k_min() */
    uint8_t qs[128];    /* 4 × 32 bytes: nibbles, halves of 64 weights */
};
BLOCK(q4_k, 144);

/* as q4_k with a fifth bit */
struct PACKED block_q5_k {
    uint16_t d;
    uint16_t dmin;
    uint8_t scales[12];
    uint8_t qh[32]; /* bit j of byte l: bit 4 of weight 32j + l */
    uint8_t qs[128];
};
BLOCK(q5_k, 176);

/* w = d * sc * (q - 32), sc per 16 */
struct PACKED block_q6_k {
    uint8_t ql[128]; /* 2 × 64 bytes: nibbles, halves of 128 weights */
    uint8_t qh[64];  /* 2 × 32 bytes: bits 2j, 2j + 1 hold bits 4, 5 of weights 32j … 32j + 31 */
    int8_t scales[16];
    uint16_t d;
};
BLOCK(q6_k, 210);

/* -- 256 weights, ternary ------------------------------------------------------------------ */

/* w = d * (t - 1); a byte holds five base-3 digits as a fraction of 256, qh four */
struct PACKED block_tq1_0 {
    uint8_t qs[48]; /* 32 bytes for 160 weights, 16 for 80 */
    uint8_t qh[4];  /* 16 weights */
    uint16_t d;
};
BLOCK(tq1_0, 54);

/* w = d * (t - 1), 2 × 32 bytes as in q2_k */
struct PACKED block_tq2_0 {
    uint8_t qs[64];
    uint16_t d;
};
BLOCK(tq2_0, 66);

/* -- 256 weights, lookup grids ---------------------------------------------------------------- */

/* w = d / 8 * (2s + 1) * ±grid; per 32: four 8-bit indices, then 4 × 7 sign bits and 4 bits of s */
struct PACKED block_iq2_xxs {
    uint16_t d;
    uint8_t qs[64]; /* 8 × (4 + 4) bytes */
};
BLOCK(iq2_xxs, 66);

/* same scale, s per 16; per 8: 9 bits of index, 7 of sign */
struct PACKED block_iq2_xs {
    uint16_t d;
    uint16_t qs[32];
    uint8_t scales[8];
};
BLOCK(iq2_xs, 74);

/* same scale, s per 16; 10 bits of index, 8 of sign */
struct PACKED block_iq2_s {
    uint16_t d;
    uint8_t qs[32];    /* low 8 bits of the indices */
    uint8_t signs[32]; /* one byte per 8 weights */
    uint8_t qh[8];     /* bits 2l, 2l + 1: high bits of index l of 4 */
    uint8_t scales[8];
};
BLOCK(iq2_s, 82);

/* w = d / 4 * (2s + 1) * ±grid; an index per 4 weights */
struct PACKED block_iq3_xxs {
    uint16_t d;
    uint8_t qs[64];
    uint8_t signs[32]; /* 8 × 4 bytes: 4 × 7 sign bits and 4 bits of s */
};
BLOCK(iq3_xxs, 98);

/* w = d * (2s + 1) * ±grid; an index of 9 bits per 4 weights */
struct PACKED block_iq3_s {
    uint16_t d;
    uint8_t qs[64];
    uint8_t qh[8]; /* bit l: bit 8 of index l of 8 */
    uint8_t signs[32];
    uint8_t scales[4]; /* nibbles */
};
BLOCK(iq3_s, 110);

/* w = d * (2s + 1) * (grid ± 1/8); an index of 11 bits per 8 weights */
struct PACKED block_iq1_s {
    uint16_t d;
    uint8_t qs[32];
    uint16_t qh[8]; /* 4 × 3 high bits, 3 bits of s, sign of the shift */
};
BLOCK(iq1_s, 50);

/* the same; s per 16, shift per 8, and d spread over the high nibbles of the four scale words */
struct PACKED block_iq1_m {
    uint8_t qs[32];
    uint8_t qh[16];     /* per 8 weights a nibble: 3 high bits, sign of the shift */
    uint16_t scales[4]; /* 4 × 3 bits of s, 4 bits of d */
};
BLOCK(iq1_m, 56);

/* w = d * (ls - 32) * iq4_values[q], ls per 32 */
struct PACKED block_iq4_xs {
    uint16_t d;
    uint16_t scales_h;   /* 8 × 2 bits */
    uint8_t scales_l[4]; /* 8 × 4 bits */
    uint8_t qs[128];     /* 8 × 16 bytes: nibbles, halves of 32 weights */
};
BLOCK(iq4_xs, 136);

#undef BLOCK

/* -- scales of six bits ------------------------------------------------------------------------ */

/*
 * j < 4: the low six bits of byte j (minimum: j + 4); else a nibble of byte
 * j + 4 and the top two bits of byte j - 4 (minimum: j).
 */
static inline int k_scale(const uint8_t scales[12], int j)
{
    return j < 4 ? scales[j] & 63 : (scales[j + 4] & 15) | (scales[j - 4] >> 6) << 4;
}

static inline int k_min(const uint8_t scales[12], int j)
{
    return j < 4 ? scales[j + 4] & 63 : scales[j + 4] >> 4 | (scales[j] >> 6) << 4;
}

/* The 6-bit scale j of 16 of q3_k, 0 … 63. */
static inline int q3_k_scale(const uint8_t scales[12], int j)
{
    int low = j < 8 ? scales[j] & 15 : scales[j - 8] >> 4;

    return low | (scales[8 + j % 4] >> (2 * (j / 4)) & 3) << 4;
}
