/*
 * mkmodel - synthetic models of any size: the shapes, names, keys and mixtures
 * of types of real families, with random weights, for work on speed, memory
 * and streaming, where the values do not matter but the bytes do.
 *
 * The same options give the same file on every machine.  A byte-level
 * vocabulary (256 bytes, a few specials, filler) and a ChatML template are
 * there, so text prompts work; every byte is one token.
 *
 * Ends the process with one sentence when a file cannot be written.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "backends/formats/format.h"
#include "tests/support/gguf_writer.h"

struct mkmodel_preset {
    const char *name, *arch;
    unsigned n_layers, n_embd, n_ff, n_heads, n_kv_heads, head_dim, n_vocab;
    unsigned n_expert, n_used, n_ff_exp; /* 0: dense */
};

extern const struct mkmodel_preset mkmodel_presets[]; /* ends with a name of NULL */

/* A type of a whole model: what most matrices are, what v and down projections are, and the head. */
struct mkmodel_type {
    const char *name; /* "Q4_K_M" */
    uint32_t file_type;
    enum format_id base, down, out;
};

extern const struct mkmodel_type mkmodel_types[]; /* ends with a name of NULL */

struct mkmodel {
    struct mkmodel_preset preset; /* a copy: layers, experts and vocabulary can be changed */
    const struct mkmodel_type *type;
    unsigned n_ctx; /* 0: 40960 */
    uint64_t seed;
};

const struct mkmodel_preset *mkmodel_preset_of(const char *name); /* NULL when unknown */
const struct mkmodel_type *mkmodel_type_of(const char *name);     /* NULL when unknown */

/* How the values of a tensor are made. */
struct mkmodel_fill {
    enum { MKMODEL_NOISE, MKMODEL_ONES, MKMODEL_UNIFORM } kind;
    float lo, hi; /* of uniform ones */
};

/* Everything but the data: keys, and tensors that are only declared, with their fills beside them. */
struct mkmodel_plan {
    struct gguf_writer w;
    struct mkmodel_fill *fills; /* one a tensor */
    size_t cap_fills;
};

void mkmodel_plan(const struct mkmodel *o, struct mkmodel_plan *ret);
void mkmodel_plan_clear(struct mkmodel_plan *p);

/* Writes the file, replacing one that is there; returns its bytes. */
uint64_t mkmodel_save(const struct mkmodel *o, const char *path);
