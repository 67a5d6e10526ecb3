/* q8_0: 32 weights, w = d * q. */
#include "backends/formats/blocks.h"
#include "backends/formats/encode.h"
#include "backends/formats/format.h"
#include "backends/formats/half.h"
#include "backends/formats/unpack.h"

extern const struct format format_q8_0;

void unpack_q8_0(const void *block, struct unpacked *u)
{
    const struct block_q8_0 *b = block;
    u->d = f16_to_f32(b->d);
    memcpy(u->q, b->qs, sizeof b->qs);
}

static void to_f32(const void *blocks, float *out, size_t n)
{
    unpack_one(&format_q8_0, unpack_q8_0, blocks, out, n);
}

static void from_f32(const float *x, void *blocks, size_t n)
{
    struct block_q8_0 *b = blocks;
    /* No search: with 255 codes the largest value as 127 is within a hair of the best. */
    for (size_t i = 0; i < n / 32; i++, b++, x += 32) {
        float inv;

        b->d = encode_f16(encode_max_abs(x, 32) / 127.0f);
        inv = encode_inverse(f16_to_f32(b->d));
        for (int j = 0; j < 32; j++)
            b->qs[j] = (int8_t)encode_round(x[j] * inv, -127, 127);
    }
}

const struct format format_q8_0 = {
    .name = "q8_0",
    .gguf_type = 8,
    .block_elems = 32,
    .block_bytes = sizeof(struct block_q8_0),
    .act = ACT_Q8_32,
    .to_f32 = to_f32,
    .from_f32 = from_f32,
};
