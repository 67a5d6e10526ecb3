/* nvfp4: 64 weights in fours of 16, 4-bit floats under an 8-bit float. */
#include "backends/formats/blocks.h"
#include "backends/formats/encode.h"
#include "backends/formats/format.h"
#include "backends/formats/half.h"
#include "backends/formats/iq_tables.h"
#include "backends/formats/unpack.h"

/* The scales ascend with their codes up to 0x7e. */
static uint8_t nearest_scale(float half)
{
    int code = 0;

    while (code < 0x7e && ue4m3_half_to_f32((uint8_t)(code + 1)) <= half)
        code++;
    if (code < 0x7e &&
        ue4m3_half_to_f32((uint8_t)(code + 1)) - half < half - ue4m3_half_to_f32((uint8_t)code))
        code++;
    return (uint8_t)code;
}

extern const struct format format_nvfp4;

void unpack_nvfp4(const void *block, struct unpacked *u)
{
    const struct block_nvfp4 *b = block;
    u->d = 0x1p-10f;
    for (int i = 0; i < 64; i++) {
        int j = i / 16;

        u->sc[j] = ue4m3_half_steps(b->d[j]);
        u->q[i] = fp4_doubled[b->qs[8 * j + i % 8] >> i / 8 % 2 * 4 & 15];
    }
}

static void to_f32(const void *blocks, float *out, size_t n)
{
    unpack_scales(&format_nvfp4, unpack_nvfp4, blocks, out, n);
}

static void from_f32(const float *x, void *blocks, size_t n)
{
    struct block_nvfp4 *b = blocks;
    for (size_t i = 0; i < n / 64; i++, b++, x += 64) {
        for (int j = 0; j < 4; j++) {
            const float *g = x + 16 * j;
            float inv;

            b->d[j] = nearest_scale(encode_max_abs(g, 16) / 12.0f);
            inv = encode_inverse(ue4m3_half_to_f32(b->d[j]));
            for (int l = 0; l < 8; l++)
                b->qs[8 * j + l] =
                    (uint8_t)(encode_fp4(g[l] * inv) | encode_fp4(g[l + 8] * inv) << 4);
        }
    }
}

const struct format format_nvfp4 = {
    .name = "nvfp4",
    .gguf_type = 40,
    .block_elems = 64,
    .block_bytes = sizeof(struct block_nvfp4),
    .act = ACT_Q8_32,
    .to_f32 = to_f32,
    .from_f32 = from_f32,
};
