/* q4_k: 256 weights in eights of 32, w = d * sc * q - dmin * m. */
#include "backends/formats/blocks.h"
#include "backends/formats/encode_k.h"
#include "backends/formats/format.h"
#include "backends/formats/half.h"
#include "backends/formats/unpack.h"

extern const struct format format_q4_k;

void unpack_q4_k(const void *block, struct unpacked *u)
{
    const struct block_q4_k *b = block;
    u->d = f16_to_f32(b->d);
    u->m = f16_to_f32(b->dmin);
    for (int j = 0; j < 16; j++) {
        u->sc[j] = k_scale(b->scales, j / 2);
        u->mins[j] = k_min(b->scales, j / 2);
    }
    for (int i = 0; i < 256; i++)
        u->q[i] = b->qs[i / 64 * 32 + i % 32] >> i % 64 / 32 * 4 & 15;
}

static void to_f32(const void *blocks, float *out, size_t n)
{
    unpack_minima(&format_q4_k, unpack_q4_k, blocks, out, n);
}

static void from_f32(const float *x, void *blocks, size_t n)
{
    struct block_q4_k *b = blocks;
    uint8_t q[256], scales[12];
    uint16_t d, dmin;

    for (size_t i = 0; i < n / 256; i++, b++, x += 256) {
        encode_k_mins(x, 15, &d, &dmin, scales, q);
        b->d = d;
        b->dmin = dmin;
        memcpy(b->scales, scales, sizeof scales);
        for (int j = 0; j < 128; j++) {
            int at = j / 32 * 64 + j % 32;

            b->qs[j] = (uint8_t)(q[at] | q[at + 32] << 4);
        }
    }
}

const struct format format_q4_k = {
    .name = "q4_k",
    .gguf_type = 12,
    .block_elems = 256,
    .block_bytes = sizeof(struct block_q4_k),
    .act = ACT_Q8_256,
    .to_f32 = to_f32,
    .from_f32 = from_f32,
};
