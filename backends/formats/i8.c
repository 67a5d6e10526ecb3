/* i8: plain integers. */
#include "backends/formats/encode.h"
#include "backends/formats/format.h"

static void to_f32(const void *blocks, float *out, size_t n)
{
    const uint8_t *p = blocks;

    for (size_t i = 0; i < n; i++) {
        int8_t v;

        memcpy(&v, p + i * sizeof v, sizeof v);
        out[i] = (float)v;
    }
}

static void from_f32(const float *x, void *blocks, size_t n)
{
    uint8_t *p = blocks;

    for (size_t i = 0; i < n; i++) {
        int8_t v = (int8_t)encode_round(x[i], INT8_MIN, INT8_MAX);

        memcpy(p + i * sizeof v, &v, sizeof v);
    }
}

const struct format format_i8 = {
    .name = "i8",
    .gguf_type = 24,
    .block_elems = 1,
    .block_bytes = 1,
    .act = ACT_F32,
    .to_f32 = to_f32,
    .from_f32 = from_f32,
};
