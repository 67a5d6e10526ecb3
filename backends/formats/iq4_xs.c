/* iq4_xs: 256 weights in eights of 32, w = d * (ls - 32) * value of a table of 16. */
#include "backends/formats/blocks.h"
#include "backends/formats/encode.h"
#include "backends/formats/format.h"
#include "backends/formats/half.h"
#include "backends/formats/iq_tables.h"
#include "backends/formats/unpack.h"

extern const struct format format_iq4_xs;

void unpack_iq4_xs(const void *block, struct unpacked *u)
{
    const struct block_iq4_xs *b = block;
    u->d = f16_to_f32(b->d);
    for (int j = 0; j < 16; j++) {
        int g = j / 2;

        u->sc[j] = ((b->scales_l[g / 2] >> g % 2 * 4 & 15) | (b->scales_h >> g * 2 & 3) << 4) - 32;
    }
    for (int i = 0; i < 256; i++)
        u->q[i] = iq4_values[b->qs[i / 32 * 16 + i % 16] >> i % 32 / 16 * 4 & 15];
}

static void to_f32(const void *blocks, float *out, size_t n)
{
    unpack_scales(&format_iq4_xs, unpack_iq4_xs, blocks, out, n);
}

static void from_f32(const float *x, void *blocks, size_t n)
{
    struct block_iq4_xs *b = blocks;
    for (size_t i = 0; i < n / 256; i++, b++, x += 256) {
        float scale[8], extreme = 0, d, inv;

        for (int g = 0; g < 8; g++) {
            scale[g] = encode_scale_table(x + 32 * g, 32, iq4_values);
            if (fabsf(scale[g]) > fabsf(extreme))
                extreme = scale[g];
        }
        memset(b, 0, sizeof *b);
        b->d = encode_f16(extreme / -32.0f);
        d = f16_to_f32(b->d);
        inv = encode_inverse(d);
        for (int g = 0; g < 8; g++) {
            int ls = encode_round(scale[g] * inv, -32, 31), code = ls + 32;
            float group_inv = encode_inverse(d * (float)ls);

            b->scales_l[g / 2] |= (uint8_t)((code & 15) << g % 2 * 4);
            b->scales_h |= (uint16_t)(code >> 4 << g * 2);
            for (int l = 0; l < 32; l++)
                b->qs[16 * g + l % 16] |=
                    (uint8_t)(encode_nearest16(x[32 * g + l] * group_inv, iq4_values)
                              << l / 16 * 4);
        }
    }
}

const struct format format_iq4_xs = {
    .name = "iq4_xs",
    .gguf_type = 23,
    .block_elems = 256,
    .block_bytes = sizeof(struct block_iq4_xs),
    .act = ACT_Q8_256,
    .to_f32 = to_f32,
    .from_f32 = from_f32,
};
