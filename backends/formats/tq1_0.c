/* tq1_0: 256 ternary weights, five base-3 digits in a byte. */
#include "backends/formats/blocks.h"
#include "backends/formats/encode.h"
#include "backends/formats/format.h"
#include "backends/formats/half.h"
#include "backends/formats/unpack.h"

static const uint8_t power3[5] = {1, 3, 9, 27, 81};

/*
 * A byte is a fraction of 256 whose base-3 digits after the point are the
 * weights, the first one foremost: multiplying by 3^n modulo 256 moves digit n
 * to the front, and times 3 / 256 reads it.
 */
static int8_t digit(uint8_t byte, int n)
{
    uint8_t front = (uint8_t)(byte * power3[n]);

    return (int8_t)((front * 3 >> 8) - 1);
}

/* The smallest fraction of 256 that is not below 0.t0t1t2t3t4 in base 3. */
static uint8_t fraction(const int *t, int stride, int n)
{
    int v = 0;

    for (int i = 0; i < 5; i++)
        v = v * 3 + (i < n ? t[i * stride] : 0);
    return (uint8_t)((v * 256 + 242) / 243);
}

extern const struct format format_tq1_0;

void unpack_tq1_0(const void *block, struct unpacked *u)
{
    const struct block_tq1_0 *b = block;
    u->d = f16_to_f32(b->d);
    for (int j = 0; j < 16; j++)
        u->sc[j] = 1;
    for (int n = 0; n < 5; n++) {
        for (int l = 0; l < 32; l++)
            u->q[32 * n + l] = digit(b->qs[l], n);
        for (int l = 0; l < 16; l++)
            u->q[160 + 16 * n + l] = digit(b->qs[32 + l], n);
        for (int l = 0; n < 4 && l < 4; l++)
            u->q[240 + 4 * n + l] = digit(b->qh[l], n);
    }
}

static void to_f32(const void *blocks, float *out, size_t n)
{
    unpack_scales(&format_tq1_0, unpack_tq1_0, blocks, out, n);
}

static void from_f32(const float *x, void *blocks, size_t n)
{
    struct block_tq1_0 *b = blocks;
    for (size_t i = 0; i < n / 256; i++, b++, x += 256) {
        float inv;
        int t[256];

        b->d = encode_f16(encode_scale(x, 256, -1, 1));
        inv = encode_inverse(f16_to_f32(b->d));
        for (int j = 0; j < 256; j++)
            t[j] = encode_round(x[j] * inv, -1, 1) + 1;
        for (int l = 0; l < 32; l++)
            b->qs[l] = fraction(t + l, 32, 5);
        for (int l = 0; l < 16; l++)
            b->qs[32 + l] = fraction(t + 160 + l, 16, 5);
        for (int l = 0; l < 4; l++)
            b->qh[l] = fraction(t + 240 + l, 4, 4);
    }
}

const struct format format_tq1_0 = {
    .name = "tq1_0",
    .gguf_type = 34,
    .block_elems = 256,
    .block_bytes = sizeof(struct block_tq1_0),
    .act = ACT_Q8_256,
    .to_f32 = to_f32,
    .from_f32 = from_f32,
};
