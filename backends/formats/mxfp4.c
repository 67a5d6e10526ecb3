/* mxfp4: 32 weights, OCP MX 4-bit floats under a power of two. */
#include "backends/formats/blocks.h"
#include "backends/formats/encode.h"
#include "backends/formats/format.h"
#include "backends/formats/half.h"
#include "backends/formats/iq_tables.h"
#include "backends/formats/unpack.h"

/* Of the scales that put the largest value at 3 … 12 halves, the one with the least error. */
static uint8_t best_exponent(const float x[32])
{
    int exp, best = 0;
    float max = encode_max_abs(x, 32), best_err = HUGE_VALF;

    frexpf(max / 12.0f, &exp); /* max / 12 <= 2^exp = half of the scale e = exp + 128 */
    if (max == 0)
        return 0;
    for (int e = exp + 127; e <= exp + 129; e++) {
        uint8_t code = (uint8_t)encode_round((float)e, 0, 252); /* 12 * 2^124 is finite */
        float inv = encode_inverse(e8m0_half_to_f32(code)), err = 0;

        for (int j = 0; j < 32; j++) {
            float diff =
                isfinite(x[j]) ? x[j] * inv - (float)fp4_doubled[encode_fp4(x[j] * inv)] : 0;

            err += diff / inv / max * (diff / inv / max);
        }
        if (err < best_err) {
            best_err = err;
            best = code;
        }
    }
    return (uint8_t)best;
}

extern const struct format format_mxfp4;

void unpack_mxfp4(const void *block, struct unpacked *u)
{
    const struct block_mxfp4 *b = block;
    u->d = e8m0_half_to_f32(b->e);
    for (int i = 0; i < 16; i++) {
        u->q[i] = fp4_doubled[b->qs[i] & 15];
        u->q[i + 16] = fp4_doubled[b->qs[i] >> 4];
    }
}

static void to_f32(const void *blocks, float *out, size_t n)
{
    unpack_one(&format_mxfp4, unpack_mxfp4, blocks, out, n);
}

static void from_f32(const float *x, void *blocks, size_t n)
{
    struct block_mxfp4 *b = blocks;
    for (size_t i = 0; i < n / 32; i++, b++, x += 32) {
        float inv;

        b->e = best_exponent(x);
        inv = encode_inverse(e8m0_half_to_f32(b->e));
        for (int j = 0; j < 16; j++)
            b->qs[j] = (uint8_t)(encode_fp4(x[j] * inv) | encode_fp4(x[j + 16] * inv) << 4);
    }
}

const struct format format_mxfp4 = {
    .name = "mxfp4",
    .gguf_type = 39,
    .block_elems = 32,
    .block_bytes = sizeof(struct block_mxfp4),
    .act = ACT_Q8_32,
    .to_f32 = to_f32,
    .from_f32 = from_f32,
};
