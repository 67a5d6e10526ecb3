/* q4_0: 32 weights, w = d * (q - 8). */
#include "backends/formats/blocks.h"
#include "backends/formats/encode.h"
#include "backends/formats/format.h"
#include "backends/formats/half.h"
#include "backends/formats/unpack.h"

extern const struct format format_q4_0;

void unpack_q4_0(const void *block, struct unpacked *u)
{
    const struct block_q4_0 *b = block;
    u->d = f16_to_f32(b->d);
    for (int i = 0; i < 16; i++) {
        u->q[i] = (int8_t)((b->qs[i] & 15) - 8);
        u->q[i + 16] = (int8_t)((b->qs[i] >> 4) - 8);
    }
}

static void to_f32(const void *blocks, float *out, size_t n)
{
    unpack_one(&format_q4_0, unpack_q4_0, blocks, out, n);
}

static void from_f32(const float *x, void *blocks, size_t n)
{
    struct block_q4_0 *b = blocks;
    for (size_t i = 0; i < n / 32; i++, b++, x += 32) {
        float inv;

        b->d = encode_f16(encode_scale(x, 32, -8, 7));
        inv = encode_inverse(f16_to_f32(b->d));
        for (int j = 0; j < 16; j++) {
            int lo = encode_round(x[j] * inv, -8, 7) + 8;
            int hi = encode_round(x[j + 16] * inv, -8, 7) + 8;

            b->qs[j] = (uint8_t)(lo | hi << 4);
        }
    }
}

const struct format format_q4_0 = {
    .name = "q4_0",
    .gguf_type = 2,
    .block_elems = 32,
    .block_bytes = sizeof(struct block_q4_0),
    .act = ACT_Q8_32,
    .to_f32 = to_f32,
    .from_f32 = from_f32,
};
