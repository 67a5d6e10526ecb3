/* q4_k: 256 weights in eights of 32, w = d * sc * q - dmin * m. */
#include "backends/formats/blocks.h"
#include "backends/formats/encode.h"
#include "backends/formats/encode_k.h"
#include "backends/formats/format.h"

static void to_f32(const void *blocks, float *out, size_t n)
{
    const struct block_q4_k *b = blocks;

    for (size_t i = 0; i < n / 256; i++, b++) {
        float d = f16_to_f32(b->d);
        float dmin = f16_to_f32(b->dmin);

        for (int j = 0; j < 8; j++, out += 32) {
            const uint8_t *qs = b->qs + j / 2 * 32;
            float dl = d * (float)k_scale(b->scales, j);
            float ml = dmin * (float)k_min(b->scales, j);

            for (int l = 0; l < 32; l++)
                out[l] = dl * (float)(qs[l] >> j % 2 * 4 & 15) - ml;
        }
    }
}

static void from_f32(const float *x, void *blocks, size_t n)
{
    struct block_q4_k *b = blocks;
    uint8_t q[256];
    uint16_t d, dmin;

    for (size_t i = 0; i < n / 256; i++, b++, x += 256) {
        encode_k_mins(x, 15, &d, &dmin, b->scales, q);
        b->d = d;
        b->dmin = dmin;
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
