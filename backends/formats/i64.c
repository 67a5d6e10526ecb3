/* i64: plain integers, rounded to f32 when they are read. */
#include "backends/formats/encode.h"
#include "backends/formats/format.h"

static void to_f32(const void *blocks, float *out, size_t n)
{
    const uint8_t *p = blocks;

    for (size_t i = 0; i < n; i++) {
        int64_t v;

        memcpy(&v, p + i * sizeof v, sizeof v);
        out[i] = (float)v;
    }
}

/* Nearest, with the ends of the range for what lies beyond; NaN gives zero. */
static int64_t whole(float x)
{
    if (isnan(x))
        return 0;
    if (x >= 9223372036854775808.0f)
        return INT64_MAX;
    return x < -9223372036854775808.0f ? INT64_MIN : (int64_t)rintf(x);
}

static void from_f32(const float *x, void *blocks, size_t n)
{
    uint8_t *p = blocks;

    for (size_t i = 0; i < n; i++) {
        int64_t v = whole(x[i]);

        memcpy(p + i * sizeof v, &v, sizeof v);
    }
}

const struct format format_i64 = {
    .name = "i64",
    .gguf_type = 27,
    .block_elems = 1,
    .block_bytes = 8,
    .act = ACT_F32,
    .to_f32 = to_f32,
    .from_f32 = from_f32,
};
