/*
 * nvfp4_avx2 - half a block of nvfp4 as bytes: 32 weights in order, two
 * scales of sixteen.
 */
#pragma once

#include "backends/cpu/avx2/lanes_avx2.h"
#include "backends/formats/blocks.h"
#include "backends/formats/iq_tables.h"

/* Twice the weights of the i-th 32; eight bytes are eight low nibbles, then eight high ones. */
INLINE __m256i nvfp4_bytes(const uint8_t *w, size_t i)
{
    const __m256i table = _mm256_broadcastsi128_si256(load128(fp4_doubled));
    __m256i x =
        _mm256_castsi128_si256(load128(w + i / 2 * sizeof(struct block_nvfp4) + 4 + i % 2 * 16));

    x = _mm256_permute4x64_epi64(x, _MM_SHUFFLE(1, 1, 0, 0));
    x = _mm256_srlv_epi64(x, _mm256_setr_epi64x(0, 4, 0, 4));
    return _mm256_shuffle_epi8(table, _mm256_and_si256(x, _mm256_set1_epi8(15)));
}

/* The scales of two blocks. */
INLINE __m256 nvfp4_scales(const uint8_t *w)
{
    int first, second;

    memcpy(&first, w, 4);
    memcpy(&second, w + sizeof(struct block_nvfp4), 4);
    return lanes_ue4m3(_mm_insert_epi32(_mm_cvtsi32_si128(first), second, 1));
}
