/* iq1_m: 256 weights, the ternary grid of iq1_s, a scale per 16, a shift of ±1/8 per 8. */
#include "backends/formats/blocks.h"
#include "backends/formats/encode.h"
#include "backends/formats/encode_grid.h"
#include "backends/formats/format.h"
#include "backends/formats/half.h"
#include "backends/formats/iq_tables.h"
#include "backends/formats/unpack.h"

extern const struct format format_iq1_m;

void unpack_iq1_m(const void *block, struct unpacked *u)
{
    const struct block_iq1_m *b = block;
    uint16_t d = 0;

    for (int i = 0; i < 4; i++)
        d |= (uint16_t)(b->scales[i] >> 12 << 4 * i);
    u->d = f16_to_f32(d) * 0.125f;
    for (int j = 0; j < 16; j++)
        u->sc[j] = 2 * (b->scales[j / 4] >> j % 4 * 3 & 7) + 1;
    for (int k = 0; k < 32; k++) {
        int nibble = b->qh[k / 2] >> k % 2 * 4;

        iq_point1(iq1_grid[b->qs[k] | (nibble & 7) << 8], nibble & 8 ? -1 : 1, u->q + 8 * k);
    }
}

static void to_f32(const void *blocks, float *out, size_t n)
{
    unpack_scales(&format_iq1_m, unpack_iq1_m, blocks, out, n);
}

static void from_f32(const float *x, void *blocks, size_t n)
{
    struct block_iq1_m *b = blocks;
    struct grid1_codes c;

    for (size_t i = 0; i < n / 256; i++, b++, x += 256) {
        encode_grid1(x, 16, 8, &c);
        memset(b, 0, sizeof *b);
        for (int k = 0; k < 32; k++) {
            b->qs[k] = (uint8_t)c.index[k];
            b->qh[k / 2] |= (uint8_t)((c.index[k] >> 8 | c.minus[k] << 3) << k % 2 * 4);
        }
        for (int j = 0; j < 16; j++)
            b->scales[j / 4] |= (uint16_t)(c.s[j] << j % 4 * 3);
        for (int j = 0; j < 4; j++)
            b->scales[j] |= (uint16_t)((c.d >> 4 * j & 15) << 12);
    }
}

const struct format format_iq1_m = {
    .name = "iq1_m",
    .gguf_type = 29,
    .block_elems = 256,
    .block_bytes = sizeof(struct block_iq1_m),
    .act = ACT_Q8_256,
    .to_f32 = to_f32,
    .from_f32 = from_f32,
};
