/* q6_k: 256 weights in sixteens of 16, w = d * sc * (q - 32). */
#include "backends/formats/blocks.h"
#include "backends/formats/encode_k.h"
#include "backends/formats/format.h"
#include "backends/formats/half.h"
#include "backends/formats/unpack.h"

extern const struct format format_q6_k;

void unpack_q6_k(const void *block, struct unpacked *u)
{
    const struct block_q6_k *b = block;
    u->d = f16_to_f32(b->d);
    for (int j = 0; j < 16; j++)
        u->sc[j] = b->scales[j];
    for (int i = 0; i < 256; i++) {
        int half = i / 128, part = i % 128 / 32, l = i % 32;
        int low = b->ql[half * 64 + part % 2 * 32 + l] >> part / 2 * 4 & 15;
        int high = b->qh[half * 32 + l] >> part * 2 & 3;

        u->q[i] = (int8_t)((low | high << 4) - 32);
    }
}

static void to_f32(const void *blocks, float *out, size_t n)
{
    unpack_scales(&format_q6_k, unpack_q6_k, blocks, out, n);
}

static void from_f32(const float *x, void *blocks, size_t n)
{
    struct block_q6_k *b = blocks;
    int sc[16];
    int8_t q[256];
    uint16_t d;

    for (size_t i = 0; i < n / 256; i++, b++, x += 256) {
        encode_k_scales(x, -32, 31, -128, 127, &d, sc, q);
        memset(b, 0, sizeof *b);
        b->d = d;
        for (int j = 0; j < 16; j++)
            b->scales[j] = (int8_t)sc[j];
        for (int j = 0; j < 256; j++) {
            int half = j / 128, part = j % 128 / 32, l = j % 32, v = q[j] + 32;

            b->ql[half * 64 + part % 2 * 32 + l] |= (uint8_t)((v & 15) << part / 2 * 4);
            b->qh[half * 32 + l] |= (uint8_t)(v >> 4 << part * 2);
        }
    }
}

const struct format format_q6_k = {
    .name = "q6_k",
    .gguf_type = 14,
    .block_elems = 256,
    .block_bytes = sizeof(struct block_q6_k),
    .act = ACT_Q8_256,
    .to_f32 = to_f32,
    .from_f32 = from_f32,
};
