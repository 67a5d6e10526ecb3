/* iq3_xxs: 256 weights, a grid of 256 points of 4, signs of even parity, a scale per 32. */
#include "backends/formats/blocks.h"
#include "backends/formats/encode.h"
#include "backends/formats/encode_grid.h"
#include "backends/formats/format.h"
#include "backends/formats/half.h"
#include "backends/formats/iq_tables.h"
#include "backends/formats/unpack.h"

extern const struct format format_iq3_xxs;

void unpack_iq3_xxs(const void *block, struct unpacked *u)
{
    const struct block_iq3_xxs *b = block;
    u->d = f16_to_f32(b->d) * 0.25f;
    for (int g = 0; g < 8; g++) {
        const uint8_t *t = b->signs + 4 * g;
        uint32_t tail =
            (uint32_t)t[0] | (uint32_t)t[1] << 8 | (uint32_t)t[2] << 16 | (uint32_t)t[3] << 24;

        u->sc[2 * g] = u->sc[2 * g + 1] = 2 * (int)(tail >> 28) + 1;
        for (int l = 0; l < 8; l++)
            iq_point4(iq3_xxs_grid[b->qs[8 * g + l]], iq_signs(tail >> l / 2 * 7) >> l % 2 * 4,
                      u->q + 32 * g + 4 * l);
    }
}

static void to_f32(const void *blocks, float *out, size_t n)
{
    unpack_scales(&format_iq3_xxs, unpack_iq3_xxs, blocks, out, n);
}

static void from_f32(const float *x, void *blocks, size_t n)
{
    struct block_iq3_xxs *b = blocks;
    static const struct grid grid = {.points4 = iq3_xxs_grid,
                                     .n = 256,
                                     .top = 62,
                                     .even = true,
                                     .group = 32,
                                     .steps = 16,
                                     .share = 4};
    struct grid_codes c;

    for (size_t i = 0; i < n / 256; i++, b++, x += 256) {
        encode_grid(&grid, x, &c);
        b->d = c.d;
        for (int k = 0; k < 64; k++)
            b->qs[k] = (uint8_t)c.index[k];
        for (int g = 0; g < 8; g++) {
            uint32_t tail = (uint32_t)c.s[g] << 28;

            for (int l = 0; l < 4; l++)
                tail |= (uint32_t)(c.signs[4 * g + l] & 127) << 7 * l;
            for (int l = 0; l < 4; l++)
                b->signs[4 * g + l] = (uint8_t)(tail >> 8 * l);
        }
    }
}

const struct format format_iq3_xxs = {
    .name = "iq3_xxs",
    .gguf_type = 18,
    .block_elems = 256,
    .block_bytes = sizeof(struct block_iq3_xxs),
    .act = ACT_Q8_256,
    .to_f32 = to_f32,
    .from_f32 = from_f32,
};
