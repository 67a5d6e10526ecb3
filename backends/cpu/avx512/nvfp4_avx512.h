/*
 * nvfp4_avx512 - a block of nvfp4 as bytes: 64 weights in order, four scales
 * of sixteen.
 */
#pragma once

#include "backends/cpu/avx512/lanes_avx512.h"
#include "backends/formats/blocks.h"
#include "backends/formats/iq_tables.h"

/* Eight bytes are the low nibbles of eight weights, then the high ones of the next. */
INLINE __m512i nvfp4_codes(const uint8_t *w)
{
    const __m512i twice = _mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3);
    const __m512i low_high = _mm512_set_epi64(
        0x1020408000000000, 0x0102040800000000, 0x1020408000000000, 0x0102040800000000,
        0x1020408000000000, 0x0102040800000000, 0x1020408000000000, 0x0102040800000000);
    __m256i x = _mm256_loadu_si256((const __m256i *)(w + offsetof(struct block_nvfp4, qs)));

    return _mm512_gf2p8affine_epi64_epi8(_mm512_permutexvar_epi64(twice, _mm512_castsi256_si512(x)),
                                         low_high, 0);
}

/* Twice the weights, plus up. */
INLINE __m512i nvfp4_bytes(const uint8_t *w, int up)
{
    __m128i t = _mm_loadu_si128((const __m128i *)fp4_doubled);

    t = _mm_add_epi8(t, _mm_set1_epi8((char)up));
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(t), nvfp4_codes(w));
}
