/* iq1_s: 256 weights, a ternary grid of 2048 points of 8, a scale and a shift of ±1/8 per 32. */
#include "backends/formats/blocks.h"
#include "backends/formats/encode.h"
#include "backends/formats/encode_grid.h"
#include "backends/formats/format.h"
#include "backends/formats/half.h"
#include "backends/formats/iq_tables.h"
#include "backends/formats/unpack.h"

extern const struct format format_iq1_s;

void unpack_iq1_s(const void *block, struct unpacked *u)
{
    const struct block_iq1_s *b = block;
    u->d = f16_to_f32(b->d) * 0.125f;
    for (int k = 0; k < 32; k++) {
        int qh = b->qh[k / 4];
        int high = qh >> k % 4 * 3 & 7;

        u->sc[k / 2] = 2 * (qh >> 12 & 7) + 1;
        iq_point1(iq1_grid[b->qs[k] | high << 8], qh & 0x8000 ? -1 : 1, u->q + 8 * k);
    }
}

static void to_f32(const void *blocks, float *out, size_t n)
{
    unpack_scales(&format_iq1_s, unpack_iq1_s, blocks, out, n);
}

static void from_f32(const float *x, void *blocks, size_t n)
{
    struct block_iq1_s *b = blocks;
    struct grid1_codes c;

    for (size_t i = 0; i < n / 256; i++, b++, x += 256) {
        encode_grid1(x, 32, 32, &c);
        memset(b, 0, sizeof *b);
        b->d = c.d;
        for (int k = 0; k < 32; k++) {
            b->qs[k] = (uint8_t)c.index[k];
            b->qh[k / 4] |= (uint16_t)(c.index[k] >> 8 << k % 4 * 3);
        }
        for (int g = 0; g < 8; g++)
            b->qh[g] |= (uint16_t)(c.s[g] << 12 | c.minus[4 * g] << 15);
    }
}

const struct format format_iq1_s = {
    .name = "iq1_s",
    .gguf_type = 19,
    .block_elems = 256,
    .block_bytes = sizeof(struct block_iq1_s),
    .act = ACT_Q8_256,
    .to_f32 = to_f32,
    .from_f32 = from_f32,
};
