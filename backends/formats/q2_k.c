/* q2_k: 256 weights in sixteens of 16, w = d * sc * q - dmin * m. */
#include "backends/formats/blocks.h"
#include "backends/formats/encode_k.h"
#include "backends/formats/format.h"
#include "backends/formats/half.h"
#include "backends/formats/unpack.h"

extern const struct format format_q2_k;

void unpack_q2_k(const void *block, struct unpacked *u)
{
    const struct block_q2_k *b = block;
    u->d = f16_to_f32(b->d);
    u->m = f16_to_f32(b->dmin);
    for (int j = 0; j < 16; j++) {
        u->sc[j] = b->scales[j] & 15;
        u->mins[j] = b->scales[j] >> 4;
    }
    for (int i = 0; i < 256; i++)
        u->q[i] = b->qs[i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3;
}

static void to_f32(const void *blocks, float *out, size_t n)
{
    unpack_minima(&format_q2_k, unpack_q2_k, blocks, out, n);
}

static void from_f32(const float *x, void *blocks, size_t n)
{
    struct block_q2_k *b = blocks;
    uint8_t sc[16], m[16], q[256];
    uint16_t d, dmin;

    for (size_t i = 0; i < n / 256; i++, b++, x += 256) {
        encode_k_groups(x, 16, 3, 15, &d, &dmin, sc, m, q);
        memset(b, 0, sizeof *b);
        b->d = d;
        b->dmin = dmin;
        for (int j = 0; j < 16; j++)
            b->scales[j] = (uint8_t)(sc[j] | m[j] << 4);
        for (int j = 0; j < 256; j++)
            b->qs[j / 128 * 32 + j % 32] |= (uint8_t)(q[j] << j % 128 / 32 * 2);
    }
}

const struct format format_q2_k = {
    .name = "q2_k",
    .gguf_type = 10,
    .block_elems = 256,
    .block_bytes = sizeof(struct block_q2_k),
    .act = ACT_Q8_256,
    .to_f32 = to_f32,
    .from_f32 = from_f32,
};
