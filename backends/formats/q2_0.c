/* q2_0: 64 weights, w = d * (q - 1), q in 0 … 3. */
#include "backends/formats/blocks.h"
#include "backends/formats/encode.h"
#include "backends/formats/format.h"
#include "backends/formats/half.h"
#include "backends/formats/unpack.h"

extern const struct format format_q2_0;

void unpack_q2_0(const void *block, struct unpacked *u)
{
    const struct block_q2_0 *b = block;
    u->d = f16_to_f32(b->d);
    for (int i = 0; i < 64; i++)
        u->q[i] = (int8_t)((b->qs[i / 4] >> i % 4 * 2 & 3) - 1);
}

static void to_f32(const void *blocks, float *out, size_t n)
{
    unpack_one(&format_q2_0, unpack_q2_0, blocks, out, n);
}

static void from_f32(const float *x, void *blocks, size_t n)
{
    struct block_q2_0 *b = blocks;
    for (size_t i = 0; i < n / 64; i++, b++, x += 64) {
        float inv;

        memset(b, 0, sizeof *b);
        b->d = encode_f16(encode_scale(x, 64, -1, 2));
        inv = encode_inverse(f16_to_f32(b->d));
        for (int j = 0; j < 64; j++)
            b->qs[j / 4] |= (uint8_t)((encode_round(x[j] * inv, -1, 2) + 1) << j % 4 * 2);
    }
}

const struct format format_q2_0 = {
    .name = "q2_0",
    .gguf_type = 42,
    .block_elems = 64,
    .block_bytes = sizeof(struct block_q2_0),
    .act = ACT_Q8_32,
    .to_f32 = to_f32,
    .from_f32 = from_f32,
};
