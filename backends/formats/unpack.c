/* Blocks as integers to floats, by the four shapes of a weight; see unpack.h. */
#include "backends/formats/unpack.h"

#include "backends/formats/format.h"

void unpack_one(const struct format *f, unpack_fn *unpack, const void *blocks, float *out, size_t n)
{
    const uint8_t *block = blocks;
    struct unpacked u;

    for (size_t i = 0; i < n; i += f->block_elems, block += f->block_bytes) {
        unpack(block, &u);
        for (size_t k = 0; k < f->block_elems; k++)
            *out++ = (float)u.q[k] * u.d;
    }
}

void unpack_offset(const struct format *f, unpack_fn *unpack, const void *blocks, float *out,
                   size_t n)
{
    const uint8_t *block = blocks;
    struct unpacked u;

    for (size_t i = 0; i < n; i += f->block_elems, block += f->block_bytes) {
        unpack(block, &u);
        for (size_t k = 0; k < f->block_elems; k++)
            *out++ = (float)u.q[k] * u.d + u.m;
    }
}

void unpack_scales(const struct format *f, unpack_fn *unpack, const void *blocks, float *out,
                   size_t n)
{
    const uint8_t *block = blocks;
    struct unpacked u;

    for (size_t i = 0; i < n; i += f->block_elems, block += f->block_bytes) {
        unpack(block, &u);
        for (size_t k = 0; k < f->block_elems; k++)
            *out++ = u.d * (float)u.sc[k / 16] * (float)u.q[k];
    }
}

void unpack_minima(const struct format *f, unpack_fn *unpack, const void *blocks, float *out,
                   size_t n)
{
    const uint8_t *block = blocks;
    struct unpacked u;

    for (size_t i = 0; i < n; i += f->block_elems, block += f->block_bytes) {
        unpack(block, &u);
        for (size_t k = 0; k < f->block_elems; k++)
            *out++ = u.d * (float)u.sc[k / 16] * (float)u.q[k] - u.m * (float)u.mins[k / 16];
    }
}
