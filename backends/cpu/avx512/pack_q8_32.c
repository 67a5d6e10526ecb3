/* Columns side by side, as unsigned bytes, for the panels of 32; see panel_avx512.h. */
#include "backends/cpu/avx512/panel_avx512.h"

KERNEL(pack, q8_32, avx512);

static void pack_block(const struct act_q8_32 *const at[16], struct tile32 *t)
{
    const __mmask16 twelve = 0x0fff;

    for (size_t k = 0; k < 8; k += 4) {
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
        t->d[c] = at[c]->d;
        t->sum[c] = (float)at[c]->sum;
    }
}

void pack_q8_32_avx512(const struct pack *p)
{
    static const struct act_q8_32 nothing;
    struct tile32 *t = p->out;

    for (size_t b = 0; b < p->n / 32; b++) {
        const struct act_q8_32 *at[16];

        for (size_t c = 0; c < 16; c++)
            at[c] = c < p->cols
                        ? (const struct act_q8_32 *)((const char *)p->act + c * p->act_stride) + b
                        : &nothing;
        pack_block(at, t + b);
    }
}
