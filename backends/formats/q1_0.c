/* q1_0: 128 weights, w = d or -d. */
#include "backends/formats/blocks.h"
#include "backends/formats/encode.h"
#include "backends/formats/format.h"
#include "backends/formats/half.h"
#include "backends/formats/unpack.h"

extern const struct format format_q1_0;

void unpack_q1_0(const void *block, struct unpacked *u)
{
    const struct block_q1_0 *b = block;
    u->d = f16_to_f32(b->d);
    for (int i = 0; i < 128; i++)
        u->q[i] = b->qs[i / 8] >> i % 8 & 1 ? 1 : -1;
}

static void to_f32(const void *blocks, float *out, size_t n)
{
    unpack_one(&format_q1_0, unpack_q1_0, blocks, out, n);
}

static void from_f32(const float *x, void *blocks, size_t n)
{
    struct block_q1_0 *b = blocks;
    for (size_t i = 0; i < n / 128; i++, b++, x += 128) {
        float sum = 0;

        memset(b, 0, sizeof *b);
        for (int j = 0; j < 128; j++) {
            sum += isfinite(x[j]) ? fabsf(x[j]) / 128.0f : 0;
            b->qs[j / 8] |= (uint8_t)((x[j] >= 0) << j % 8);
        }
        b->d = encode_f16(sum); /* the mean is the least-squares scale of signs */
    }
}

const struct format format_q1_0 = {
    .name = "q1_0",
    .gguf_type = 41,
    .block_elems = 128,
    .block_bytes = sizeof(struct block_q1_0),
    .act = ACT_Q8_32,
    .to_f32 = to_f32,
    .from_f32 = from_f32,
};
