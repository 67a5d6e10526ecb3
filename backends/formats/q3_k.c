/* q3_k: 256 weights in sixteens of 16, w = d * (sc - 32) * (q - 4). */
#include "backends/formats/blocks.h"
#include "backends/formats/encode_k.h"
#include "backends/formats/format.h"
#include "backends/formats/half.h"
#include "backends/formats/unpack.h"

extern const struct format format_q3_k;

void unpack_q3_k(const void *block, struct unpacked *u)
{
    const struct block_q3_k *b = block;
    u->d = f16_to_f32(b->d);
    for (int j = 0; j < 16; j++)
        u->sc[j] = q3_k_scale(b->scales, j) - 32;
    for (int i = 0; i < 256; i++) {
        int low = b->qs[i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3;
        int high = b->hmask[i % 32] >> i / 32 & 1;

        u->q[i] = (int8_t)((low | high << 2) - 4);
    }
}

static void to_f32(const void *blocks, float *out, size_t n)
{
    unpack_scales(&format_q3_k, unpack_q3_k, blocks, out, n);
}

static void from_f32(const float *x, void *blocks, size_t n)
{
    struct block_q3_k *b = blocks;
    int sc[16];
    int8_t q[256];
    uint16_t d;

    for (size_t i = 0; i < n / 256; i++, b++, x += 256) {
        encode_k_scales(x, -4, 3, -32, 31, &d, sc, q);
        memset(b, 0, sizeof *b);
        b->d = d;
        for (int j = 0; j < 16; j++) {
            int s = sc[j] + 32;

            b->scales[j % 8] |= (uint8_t)((s & 15) << j / 8 * 4);
            b->scales[8 + j % 4] |= (uint8_t)(s >> 4 << j / 4 * 2);
        }
        for (int j = 0; j < 256; j++) {
            int v = q[j] + 4;

            b->qs[j / 128 * 32 + j % 32] |= (uint8_t)((v & 3) << j % 128 / 32 * 2);
            b->hmask[j % 32] |= (uint8_t)(v >> 2 << j / 32);
        }
    }
}

const struct format format_q3_k = {
    .name = "q3_k",
    .gguf_type = 11,
    .block_elems = 256,
    .block_bytes = sizeof(struct block_q3_k),
    .act = ACT_Q8_256,
    .to_f32 = to_f32,
    .from_f32 = from_f32,
};
