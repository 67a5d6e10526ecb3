/* q5_1: 32 weights, w = d * q + m. */
#include "backends/formats/blocks.h"
#include "backends/formats/encode.h"
#include "backends/formats/format.h"
#include "backends/formats/half.h"
#include "backends/formats/unpack.h"

extern const struct format format_q5_1;

void unpack_q5_1(const void *block, struct unpacked *u)
{
    const struct block_q5_1 *b = block;
    u->d = f16_to_f32(b->d);
    u->m = f16_to_f32(b->m);
    for (int i = 0; i < 32; i++) {
        int low = b->qs[i % 16] >> i / 16 * 4 & 15;
        int high = b->qh[i / 8] >> i % 8 & 1;

        u->q[i] = (int8_t)(low | high << 4);
    }
}

static void to_f32(const void *blocks, float *out, size_t n)
{
    unpack_offset(&format_q5_1, unpack_q5_1, blocks, out, n);
}

static void from_f32(const float *x, void *blocks, size_t n)
{
    struct block_q5_1 *b = blocks;
    for (size_t i = 0; i < n / 32; i++, b++, x += 32) {
        float m, inv;

        memset(b, 0, sizeof *b);
        b->d = encode_f16(encode_scale_offset(x, 32, 31, &m));
        b->m = encode_f16(m);
        inv = encode_inverse(f16_to_f32(b->d));
        m = f16_to_f32(b->m);
        for (int j = 0; j < 32; j++) {
            int q = encode_round((x[j] - m) * inv, 0, 31);

            b->qs[j % 16] |= (uint8_t)((q & 15) << j / 16 * 4);
            b->qh[j / 8] |= (uint8_t)(q >> 4 << j % 8);
        }
    }
}

const struct format format_q5_1 = {
    .name = "q5_1",
    .gguf_type = 7,
    .block_elems = 32,
    .block_bytes = sizeof(struct block_q5_1),
    .act = ACT_Q8_32,
    .to_f32 = to_f32,
    .from_f32 = from_f32,
};
