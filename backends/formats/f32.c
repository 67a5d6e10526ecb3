/* f32: IEEE binary32, as it is. */
#include "backends/formats/encode.h"
#include "backends/formats/format.h"

static void to_f32(const void *blocks, float *out, size_t n)
{
    const uint8_t *p = blocks;

    for (size_t i = 0; i < n; i++) {
        float v;

        memcpy(&v, p + i * sizeof v, sizeof v);
        out[i] = v;
    }
}

static void from_f32(const float *x, void *blocks, size_t n)
{
    uint8_t *p = blocks;

    for (size_t i = 0; i < n; i++) {
        float v = x[i];

        memcpy(p + i * sizeof v, &v, sizeof v);
    }
}

const struct format format_f32 = {
    .name = "f32",
    .gguf_type = 0,
    .block_elems = 1,
    .block_bytes = 4,
    .act = ACT_F32,
    .to_f32 = to_f32,
    .from_f32 = from_f32,
};
