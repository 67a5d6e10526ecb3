/* q4_1: 32 weights, w = d * q + m. */
#include "backends/formats/blocks.h"
#include "backends/formats/encode.h"
#include "backends/formats/format.h"
#include "backends/formats/half.h"
#include "backends/formats/unpack.h"

extern const struct format format_q4_1;

void unpack_q4_1(const void *block, struct unpacked *u)
{
    const struct block_q4_1 *b = block;
    u->d = f16_to_f32(b->d);
    u->m = f16_to_f32(b->m);
    for (int i = 0; i < 16; i++) {
        u->q[i] = b->qs[i] & 15;
        u->q[i + 16] = b->qs[i] >> 4;
    }
}

static void to_f32(const void *blocks, float *out, size_t n)
{
    unpack_offset(&format_q4_1, unpack_q4_1, blocks, out, n);
}

static void from_f32(const float *x, void *blocks, size_t n)
{
    struct block_q4_1 *b = blocks;
    for (size_t i = 0; i < n / 32; i++, b++, x += 32) {
        float m, inv;

        b->d = encode_f16(encode_scale_offset(x, 32, 15, &m));
        b->m = encode_f16(m);
        inv = encode_inverse(f16_to_f32(b->d));
        m = f16_to_f32(b->m);
        for (int j = 0; j < 16; j++) {
            int lo = encode_round((x[j] - m) * inv, 0, 15);
            int hi = encode_round((x[j + 16] - m) * inv, 0, 15);

            b->qs[j] = (uint8_t)(lo | hi << 4);
        }
    }
}

const struct format format_q4_1 = {
    .name = "q4_1",
    .gguf_type = 3,
    .block_elems = 32,
    .block_bytes = sizeof(struct block_q4_1),
    .act = ACT_Q8_32,
    .to_f32 = to_f32,
    .from_f32 = from_f32,
};
