/* iq4_nl: 32 weights, w = d * value of a table of 16. */
#include "backends/formats/blocks.h"
#include "backends/formats/encode.h"
#include "backends/formats/format.h"
#include "backends/formats/half.h"
#include "backends/formats/iq_tables.h"
#include "backends/formats/unpack.h"

extern const struct format format_iq4_nl;

void unpack_iq4_nl(const void *block, struct unpacked *u)
{
    const struct block_iq4_nl *b = block;
    u->d = f16_to_f32(b->d);
    for (int i = 0; i < 16; i++) {
        u->q[i] = iq4_values[b->qs[i] & 15];
        u->q[i + 16] = iq4_values[b->qs[i] >> 4];
    }
}

static void to_f32(const void *blocks, float *out, size_t n)
{
    unpack_one(&format_iq4_nl, unpack_iq4_nl, blocks, out, n);
}

static void from_f32(const float *x, void *blocks, size_t n)
{
    struct block_iq4_nl *b = blocks;
    for (size_t i = 0; i < n / 32; i++, b++, x += 32) {
        float inv;

        b->d = encode_f16(encode_scale_table(x, 32, iq4_values));
        inv = encode_inverse(f16_to_f32(b->d));
        for (int j = 0; j < 16; j++) {
            int lo = encode_nearest16(x[j] * inv, iq4_values);
            int hi = encode_nearest16(x[j + 16] * inv, iq4_values);

            b->qs[j] = (uint8_t)(lo | hi << 4);
        }
    }
}

const struct format format_iq4_nl = {
    .name = "iq4_nl",
    .gguf_type = 20,
    .block_elems = 32,
    .block_bytes = sizeof(struct block_iq4_nl),
    .act = ACT_Q8_32,
    .to_f32 = to_f32,
    .from_f32 = from_f32,
};
