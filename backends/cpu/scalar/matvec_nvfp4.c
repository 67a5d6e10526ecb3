/*
 * nvfp4: isum = Σ (2 * fp4) * a over 16, |isum| <= 16 * 12 * 127 = 24384;
 * d_w = half of the scale of the 16,
 * exact in f32.
 * f32 order: one fma per 16 weights, ascending, with the d_a of the 32 they are in:
 * acc = fma(d_a, d_w * f(isum), acc).
 */
#include "backends/cpu/scalar/matvec_scalar.h"
#include "backends/formats/blocks.h"

KERNEL(matvec, nvfp4, scalar);

void matvec_nvfp4_scalar(const struct matvec *m)
{
    struct unpacked u;

    for (size_t r = 0; r < m->rows; r++) {
        const uint8_t *w = matvec_row(m, r);
        float acc[MATVEC_COLS] = {0};

        for (size_t k = 0; k < m->n; k += 64, w += sizeof(struct block_nvfp4)) {
            unpack_nvfp4(w, &u);
            for (size_t c = 0; c < m->cols; c++) {
                const struct act_q8_32 *a = (const struct act_q8_32 *)matvec_act(m, c) + k / 32;

                for (int j = 0; j < 4; j++) {
                    int32_t isum = matvec_isum(u.q + 16 * j, a[j / 2].q + j % 2 * 16, 16);

                    acc[c] = fmaf(a[j / 2].d, u.d * (float)u.sc[j] * (float)isum, acc[c]);
                }
            }
        }
        matvec_store(m, r, acc);
    }
}
