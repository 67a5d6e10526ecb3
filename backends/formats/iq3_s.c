/* iq3_s: 256 weights, a grid of 512 points of 4, free signs, a scale per 32. */
#include "backends/formats/blocks.h"
#include "backends/formats/encode.h"
#include "backends/formats/encode_grid.h"
#include "backends/formats/format.h"
#include "backends/formats/half.h"
#include "backends/formats/iq_tables.h"
#include "backends/formats/unpack.h"

extern const struct format format_iq3_s;

void unpack_iq3_s(const void *block, struct unpacked *u)
{
    const struct block_iq3_s *b = block;
    u->d = f16_to_f32(b->d);
    for (int j = 0; j < 16; j++)
        u->sc[j] = 2 * (b->scales[j / 4] >> j / 2 % 2 * 4 & 15) + 1;
    for (int k = 0; k < 64; k++) {
        int high = b->qh[k / 8] >> k % 8 & 1;

        iq_point4(iq3_s_grid[b->qs[k] | high << 8], b->signs[k / 2] >> k % 2 * 4, u->q + 4 * k);
    }
}

static void to_f32(const void *blocks, float *out, size_t n)
{
    unpack_scales(&format_iq3_s, unpack_iq3_s, blocks, out, n);
}

static void from_f32(const float *x, void *blocks, size_t n)
{
    struct block_iq3_s *b = blocks;
    static const struct grid grid = {
        .points4 = iq3_s_grid, .n = 512, .top = 15, .group = 32, .steps = 16, .share = 1};
    struct grid_codes c;

    for (size_t i = 0; i < n / 256; i++, b++, x += 256) {
        encode_grid(&grid, x, &c);
        memset(b, 0, sizeof *b);
        b->d = c.d;
        for (int k = 0; k < 64; k++) {
            b->qs[k] = (uint8_t)c.index[k];
            b->qh[k / 8] |= (uint8_t)(c.index[k] >> 8 << k % 8);
        }
        memcpy(b->signs, c.signs, sizeof b->signs);
        for (int g = 0; g < 8; g++)
            b->scales[g / 2] |= (uint8_t)(c.s[g] << g % 2 * 4);
    }
}

const struct format format_iq3_s = {
    .name = "iq3_s",
    .gguf_type = 21,
    .block_elems = 256,
    .block_bytes = sizeof(struct block_iq3_s),
    .act = ACT_Q8_256,
    .to_f32 = to_f32,
    .from_f32 = from_f32,
};
