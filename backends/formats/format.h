/*
 * format - how numbers lie in memory: one row of the table for each tensor
 * type of GGUF.
 *
 * A format is one file backends/formats/NAME.c that defines
 *
 *     const struct format format_NAME = {...};
 *
 * (on one line up to the "=": the build collects these into formats.def, from
 * which the enum and the table are made).  Packed layouts are in blocks.h.
 * From that moment the loader sizes it, the ledger counts it, and the CPU runs
 * it.  Decoding is exact arithmetic: every machine gives the same bits.
 *
 * Any thread; nothing here allocates or fails.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum format_id {
#define FORMAT(name) FORMAT_##name,
#include "gen/formats.def"
#undef FORMAT
    FORMAT_COUNT,
    FORMAT_NONE = FORMAT_COUNT
};

/*
 * What a row of activations is turned into before it meets weights of a
 * format (kernels.md, "The arithmetic contract").  Layouts: act.h.
 */
enum act_kind {
    ACT_F32,    /* as it is: f32, f16, bf16 (and f64, i8 … i64) weights */
    ACT_Q8_32,  /* blocks of 32 int8, one f32 scale, one sum */
    ACT_Q8_256, /* blocks of 256 int8, one f32 scale, sums of 16 */
    ACT_COUNT
};

struct format {
    const char *name;     /* "q4_k": lower case, also in messages */
    uint32_t gguf_type;   /* number in a GGUF file */
    uint32_t block_elems; /* weights in a block */
    uint32_t block_bytes;
    enum act_kind act;
    /* n elements (a multiple of block_elems) to and from blocks.  from_f32 is NULL where rnbd never encodes. */
    void (*to_f32)(const void *blocks, float *out, size_t n);
    void (*from_f32)(const float *x, void *blocks, size_t n);
};

extern const struct format *const format_table[FORMAT_COUNT];

const struct format *format_of(enum format_id id);       /* NULL for FORMAT_NONE */
const struct format *format_of_gguf(uint32_t gguf_type); /* NULL when unknown or removed */
const struct format *format_of_name(const char *name);   /* NULL when unknown */
enum format_id format_id_of(const struct format *f);

/* Bytes of a row of n elements; n must be a multiple of block_elems (checked by the reader of the file). */
static inline size_t format_row_bytes(const struct format *f, size_t n)
{
    return n / f->block_elems * f->block_bytes;
}
