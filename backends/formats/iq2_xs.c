/* iq2_xs: 256 weights, a grid of 512 points of 8, signs of even parity, a scale per 16. */
#include "backends/formats/blocks.h"
#include "backends/formats/encode.h"
#include "backends/formats/encode_grid.h"
#include "backends/formats/format.h"
#include "backends/formats/half.h"
#include "backends/formats/iq_tables.h"
#include "backends/formats/unpack.h"

extern const struct format format_iq2_xs;

void unpack_iq2_xs(const void *block, struct unpacked *u)
{
    const struct block_iq2_xs *b = block;
    u->d = f16_to_f32(b->d) * 0.125f;
    for (int j = 0; j < 16; j++)
        u->sc[j] = 2 * (b->scales[j / 2] >> j % 2 * 4 & 15) + 1;
    for (int k = 0; k < 32; k++)
        iq_point8(iq2_xs_grid[b->qs[k] & 511], iq_signs(b->qs[k] >> 9), u->q + 8 * k);
}

static void to_f32(const void *blocks, float *out, size_t n)
{
    unpack_scales(&format_iq2_xs, unpack_iq2_xs, blocks, out, n);
}

static void from_f32(const float *x, void *blocks, size_t n)
{
    struct block_iq2_xs *b = blocks;
    static const struct grid grid = {.points8 = iq2_xs_grid,
                                     .n = 512,
                                     .top = 43,
                                     .even = true,
                                     .group = 16,
                                     .steps = 16,
                                     .share = 8};
    struct grid_codes c;

    for (size_t i = 0; i < n / 256; i++, b++, x += 256) {
        encode_grid(&grid, x, &c);
        b->d = c.d;
        for (int k = 0; k < 32; k++)
            b->qs[k] = (uint16_t)(c.index[k] | (c.signs[k] & 127) << 9);
        for (int g = 0; g < 8; g++)
            b->scales[g] = (uint8_t)(c.s[2 * g] | c.s[2 * g + 1] << 4);
    }
}

const struct format format_iq2_xs = {
    .name = "iq2_xs",
    .gguf_type = 17,
    .block_elems = 256,
    .block_bytes = sizeof(struct block_iq2_xs),
    .act = ACT_Q8_256,
    .to_f32 = to_f32,
    .from_f32 = from_f32,
};
