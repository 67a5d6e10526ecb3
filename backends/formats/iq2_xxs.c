/* iq2_xxs: 256 weights, a grid of 256 points of 8, signs of even parity, a scale per 32. */
#include "backends/formats/blocks.h"
#include "backends/formats/encode.h"
#include "backends/formats/encode_grid.h"
#include "backends/formats/format.h"
#include "backends/formats/half.h"
#include "backends/formats/iq_tables.h"
#include "backends/formats/unpack.h"

extern const struct format format_iq2_xxs;

void unpack_iq2_xxs(const void *block, struct unpacked *u)
{
    const struct block_iq2_xxs *b = block;
    u->d = f16_to_f32(b->d) * 0.125f;
    for (int g = 0; g < 8; g++) {
        const uint8_t *qs = b->qs + 8 * g;
        uint32_t tail =
            (uint32_t)qs[4] | (uint32_t)qs[5] << 8 | (uint32_t)qs[6] << 16 | (uint32_t)qs[7] << 24;

        u->sc[2 * g] = u->sc[2 * g + 1] = 2 * (int)(tail >> 28) + 1;
        for (int l = 0; l < 4; l++)
            iq_point8(iq2_xxs_grid[qs[l]], iq_signs(tail >> 7 * l), u->q + 32 * g + 8 * l);
    }
}

static void to_f32(const void *blocks, float *out, size_t n)
{
    unpack_scales(&format_iq2_xxs, unpack_iq2_xxs, blocks, out, n);
}

static void from_f32(const float *x, void *blocks, size_t n)
{
    struct block_iq2_xxs *b = blocks;
    static const struct grid grid = {.points8 = iq2_xxs_grid,
                                     .n = 256,
                                     .top = 43,
                                     .even = true,
                                     .group = 32,
                                     .steps = 16,
                                     .share = 8};
    struct grid_codes c;

    for (size_t i = 0; i < n / 256; i++, b++, x += 256) {
        encode_grid(&grid, x, &c);
        b->d = c.d;
        for (int g = 0; g < 8; g++) {
            uint32_t tail = (uint32_t)c.s[g] << 28;

            for (int l = 0; l < 4; l++) {
                b->qs[8 * g + l] = (uint8_t)c.index[4 * g + l];
                tail |= (uint32_t)(c.signs[4 * g + l] & 127) << 7 * l;
            }
            for (int l = 0; l < 4; l++)
                b->qs[8 * g + 4 + l] = (uint8_t)(tail >> 8 * l);
        }
    }
}

const struct format format_iq2_xxs = {
    .name = "iq2_xxs",
    .gguf_type = 16,
    .block_elems = 256,
    .block_bytes = sizeof(struct block_iq2_xxs),
    .act = ACT_Q8_256,
    .to_f32 = to_f32,
    .from_f32 = from_f32,
};
