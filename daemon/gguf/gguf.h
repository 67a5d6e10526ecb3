/*
 * gguf - a model file: header, metadata and the directory of tensors, read and
 * proven.  A file is hostile until this room has said otherwise; every rule of
 * the format that later code relies on is checked here, once (versions 2 and 3,
 * little-endian; counts against the bytes left; unique keys and names;
 * alignment; sizes without overflow; tensors inside the file and not
 * overlapping; splits complete).
 *
 * Metadata is read into memory; tensor data is not: gguf_tensor says in which
 * part, where and how long it is, and daemon/memory reads it.
 *
 * Everything returned is borrowed until gguf_close.  Any one thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/formats/format.h"
#include "common/err.h"
#include "common/str.h"

struct gguf;

enum gguf_type {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64
};

/* One metadata value.  Integers of all widths are read through gguf_get_*. */
struct gguf_value {
    struct view key;
    enum gguf_type type; /* GGUF_ARRAY: see elem_type, n */
    enum gguf_type elem_type;
    size_t n;                   /* elements of an array; 1 otherwise */
    const void *data;           /* packed little-endian numbers as in the file (may be unaligned) */
    const struct view *strings; /* a string or an array of them; else NULL */
};

struct gguf_tensor {
    struct view name;
    const struct format *fmt;
    unsigned n_dims;
    uint64_t dims[4]; /* dims[0] contiguous; unused are 1 */
    unsigned part;    /* which file of a split */
    uint64_t offset;  /* absolute, in that file */
    uint64_t bytes;   /* true size */
};

/*
 * Whom to ask before memory is taken that grows with the file; what is refused ends
 * the reading with that error.  What was asked for is never less than what was taken,
 * and may be more (gguf_memory_bytes).
 */
struct gguf_room {
    int (*reserve)(void *arg, size_t bytes, struct err *err);
    void *arg;
};

/* Opens path; when it is the first part of a split, all parts. */
int gguf_open(const char *path, struct gguf **ret_file, struct err *err);
/* room: NULL: nobody is asked. */
int gguf_open_within(const char *path, const struct gguf_room *room, struct gguf **ret_file,
                     struct err *err);
void gguf_close(struct gguf *g);

const char *gguf_path(const struct gguf *g, unsigned part);
unsigned gguf_parts(const struct gguf *g);
int gguf_fd(const struct gguf *g, unsigned part); /* read-only; stays with g */
uint64_t gguf_file_bytes(const struct gguf *g);   /* of all parts */
unsigned gguf_version(const struct gguf *g);
/* Host memory held for the metadata: what the ledger counts under text. */
size_t gguf_memory_bytes(const struct gguf *g);

size_t gguf_n_values(const struct gguf *g);
const struct gguf_value *gguf_value_at(const struct gguf *g, size_t i);    /* file order */
const struct gguf_value *gguf_find(const struct gguf *g, const char *key); /* NULL when absent */

size_t gguf_n_tensors(const struct gguf *g);
const struct gguf_tensor *gguf_tensor_at(const struct gguf *g,
                                         size_t i); /* file order, part by part */
const struct gguf_tensor *gguf_find_tensor(const struct gguf *g, const char *name);

/*
 * Typed getters: absent leaves *out and returns 0; present returns 1; a wrong
 * type or a value outside [lo, hi] is an error that names the key.  Integers
 * accept every integer type of the file; floats accept f32 and f64 (finite).
 */
int gguf_get_u64(const struct gguf *g, const char *key, uint64_t lo, uint64_t hi, uint64_t *out,
                 struct err *err);
int gguf_get_u32(const struct gguf *g, const char *key, uint32_t lo, uint32_t hi, uint32_t *out,
                 struct err *err);
int gguf_get_f32(const struct gguf *g, const char *key, float lo, float hi, float *out,
                 struct err *err);
int gguf_get_bool(const struct gguf *g, const char *key, bool *out, struct err *err);
int gguf_get_string(const struct gguf *g, const char *key, struct view *out, struct err *err);

/* Element i of an integer or float array value (i < n, checked by the caller). */
int64_t gguf_elem_i64(const struct gguf_value *v, size_t i); /* u64 past 2^63 saturates */
double gguf_elem_f64(const struct gguf_value *v, size_t i);
bool gguf_is_int(enum gguf_type t);
bool gguf_is_float(enum gguf_type t);
const char *gguf_type_name(enum gguf_type t);
