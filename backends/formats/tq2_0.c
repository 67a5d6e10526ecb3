/* tq2_0: 256 weights of two bits, w = d * (q - 1). */
#include "backends/formats/blocks.h"
#include "backends/formats/encode.h"
#include "backends/formats/format.h"
#include "backends/formats/half.h"
#include "backends/formats/unpack.h"

extern const struct format format_tq2_0;

void unpack_tq2_0(const void *block, struct unpacked *u)
{
    const struct block_tq2_0 *b = block;
    u->d = f16_to_f32(b->d);
    for (int j = 0; j < 16; j++)
        u->sc[j] = 1;
    for (int i = 0; i < 256; i++)
        u->q[i] = (int8_t)((b->qs[i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3) - 1);
}

static void to_f32(const void *blocks, float *out, size_t n)
{
    unpack_scales(&format_tq2_0, unpack_tq2_0, blocks, out, n);
}

static void from_f32(const float *x, void *blocks, size_t n)
{
    struct block_tq2_0 *b = blocks;
    for (size_t i = 0; i < n / 256; i++, b++, x += 256) {
        float inv;

        memset(b, 0, sizeof *b);
        b->d = encode_f16(encode_scale(x, 256, -1, 1));
        inv = encode_inverse(f16_to_f32(b->d));
        for (int j = 0; j < 256; j++) {
            int t = encode_round(x[j] * inv, -1, 1) + 1;

            b->qs[j / 128 * 32 + j % 32] |= (uint8_t)(t << j % 128 / 32 * 2);
        }
    }
}

const struct format format_tq2_0 = {
    .name = "tq2_0",
    .gguf_type = 35,
    .block_elems = 256,
    .block_bytes = sizeof(struct block_tq2_0),
    .act = ACT_Q8_256,
    .to_f32 = to_f32,
    .from_f32 = from_f32,
};
