/* iq2_s: 256 weights, a grid of 1024 points of 8, free signs, a scale per 16. */
#include "backends/formats/blocks.h"
#include "backends/formats/encode.h"
#include "backends/formats/encode_grid.h"
#include "backends/formats/format.h"
#include "backends/formats/half.h"
#include "backends/formats/iq_tables.h"
#include "backends/formats/unpack.h"

extern const struct format format_iq2_s;

void unpack_iq2_s(const void *block, struct unpacked *u)
{
    const struct block_iq2_s *b = block;
    u->d = f16_to_f32(b->d) * 0.125f;
    for (int j = 0; j < 16; j++)
        u->sc[j] = 2 * (b->scales[j / 2] >> j % 2 * 4 & 15) + 1;
    for (int k = 0; k < 32; k++) {
        int high = b->qh[k / 4] >> k % 4 * 2 & 3;

        iq_point8(iq2_s_grid[b->qs[k] | high << 8], b->signs[k], u->q + 8 * k);
    }
}

static void to_f32(const void *blocks, float *out, size_t n)
{
    unpack_scales(&format_iq2_s, unpack_iq2_s, blocks, out, n);
}

static void from_f32(const float *x, void *blocks, size_t n)
{
    struct block_iq2_s *b = blocks;
    static const struct grid grid = {
        .points8 = iq2_s_grid, .n = 1024, .top = 43, .group = 16, .steps = 16, .share = 8};
    struct grid_codes c;

    for (size_t i = 0; i < n / 256; i++, b++, x += 256) {
        encode_grid(&grid, x, &c);
        memset(b, 0, sizeof *b);
        b->d = c.d;
        for (int k = 0; k < 32; k++) {
            b->qs[k] = (uint8_t)c.index[k];
            b->qh[k / 4] |= (uint8_t)(c.index[k] >> 8 << k % 4 * 2);
            b->signs[k] = c.signs[k];
        }
        for (int g = 0; g < 8; g++)
            b->scales[g] = (uint8_t)(c.s[2 * g] | c.s[2 * g + 1] << 4);
    }
}

const struct format format_iq2_s = {
    .name = "iq2_s",
    .gguf_type = 22,
    .block_elems = 256,
    .block_bytes = sizeof(struct block_iq2_s),
    .act = ACT_Q8_256,
    .to_f32 = to_f32,
    .from_f32 = from_f32,
};
