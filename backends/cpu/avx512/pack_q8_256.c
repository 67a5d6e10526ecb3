/* Columns side by side, as unsigned bytes, for the panels of 256; see panel_avx512.h. */
#include <string.h>

#include "backends/cpu/avx512/panel_avx512.h"

KERNEL(pack, q8_256, avx512);

static void pack_block(const struct act_q8_256 *const at[16], struct tile256 *t)
{
    const __mmask16 twelve = 0x0fff;

    for (size_t k = 0; k < 64; k += 4) {
        __m512i x[4];

        for (size_t g = 0; g < 4; g++)
            x[g] = lanes_load(at[g]->q + 4 * k, at[g + 4]->q + 4 * k, at[g + 8]->q + 4 * k,
                              at[g + 12]->q + 4 * k);
        lanes_transpose4(x);
        for (size_t i = 0; i < 4; i++)
            _mm512_mask_storeu_epi32(t->q[k + i], twelve,
                                     _mm512_xor_si512(x[i], _mm512_set1_epi8(-128)));
    }
    for (size_t c = 0; c < KERNELS_TILE_COLS; c++) {
        for (size_t j = 0; j < 16; j++)
            t->sum16[j / 2][c][j % 2] = at[c]->sums[j];
        for (size_t j = 0; j < 8; j++)
            t->sum32[j / 2][c][j % 2] = (int16_t)(at[c]->sums[2 * j] + at[c]->sums[2 * j + 1]);
        t->d[c] = at[c]->d;
    }
    memset(t->pad, 0, sizeof(t->pad));
}

void pack_q8_256_avx512(const struct pack *p)
{
    static const struct act_q8_256 nothing;
    struct tile256 *t = p->out;

    for (size_t b = 0; b < p->n / 256; b++) {
        const struct act_q8_256 *at[16];

        for (size_t c = 0; c < 16; c++)
            at[c] = c < p->cols
                        ? (const struct act_q8_256 *)((const char *)p->act + c * p->act_stride) + b
                        : &nothing;
        pack_block(at, t + b);
    }
}
