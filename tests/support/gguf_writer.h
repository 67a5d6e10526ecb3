/*
 * gguf_writer - makes GGUF files: sound ones of any content, and hostile ones.
 *
 *     struct gguf_writer w = {0};
 *     gguf_writer_string(&w, "general.architecture", "llama");
 *     gguf_writer_tensor(&w, "output.weight", 0, 2, (uint64_t[]){32, 4}, NULL);
 *     fd = gguf_writer_memfd(&w);
 *     gguf_writer_clear(&w);
 *
 * {0} is an empty sound file of version 3.  What is added is written as given
 * and never checked; the fields below and the pointers returned let a test say
 * something wrong.  Runs out of memory by ending the process.
 *
 * One owner at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/str.h"
#include "daemon/gguf/gguf.h"

struct gguf_writer_tensor {
    char name[80];
    size_t name_len;
    uint32_t type; /* number in the file */
    uint32_t n_dims;
    uint64_t dims[8];
    void *data; /* owned; NULL: only declared */
    size_t bytes;
    bool fixed_offset; /* offset is written instead of the true place */
    uint64_t offset;
};

struct gguf_writer {
    struct str meta; /* the values, packed */
    uint64_t n_values;
    struct gguf_writer_tensor *tensors;
    size_t n_tensors, cap_tensors;

    uint32_t version;   /* 0: 3 */
    uint32_t alignment; /* of the data; 0: 32.  Not written as a key by itself. */
    /* Added to the counts in the header, to lie. */
    int64_t extra_values, extra_tensors;
    size_t cut_bytes;      /* taken off the end */
    size_t trailing_bytes; /* zeros put at the end */
};

void gguf_writer_clear(struct gguf_writer *w);

void gguf_writer_int(struct gguf_writer *w, const char *key, enum gguf_type type, int64_t value);
void gguf_writer_u32(struct gguf_writer *w, const char *key, uint32_t value);
void gguf_writer_u64(struct gguf_writer *w, const char *key, uint64_t value);
void gguf_writer_f32(struct gguf_writer *w, const char *key, float value);
void gguf_writer_f64(struct gguf_writer *w, const char *key, double value);
void gguf_writer_bool(struct gguf_writer *w, const char *key, bool value);
void gguf_writer_string(struct gguf_writer *w, const char *key, const char *value);
void gguf_writer_strings(struct gguf_writer *w, const char *key, const char *const *values,
                         size_t n);
void gguf_writer_views(struct gguf_writer *w, const char *key, const struct view *values, size_t n);
/* An array of numbers, packed as on this machine. */
void gguf_writer_array(struct gguf_writer *w, const char *key, enum gguf_type elem_type,
                       const void *values, size_t n);

/*
 * Pieces of a value, for wrong ones: a key and type that count as one value,
 * then any bytes.
 */
void gguf_writer_begin(struct gguf_writer *w, struct view key, uint32_t type);
void gguf_writer_raw(struct gguf_writer *w, const void *bytes, size_t n);
void gguf_writer_raw_u32(struct gguf_writer *w, uint32_t value);
void gguf_writer_raw_u64(struct gguf_writer *w, uint64_t value);

/*
 * Adds a tensor of the number type as it is in the file; data NULL gives
 * zeros.  The result can be changed until the next one is added.
 */
struct gguf_writer_tensor *gguf_writer_tensor(struct gguf_writer *w, const char *name,
                                              uint32_t type, uint32_t n_dims, const uint64_t *dims,
                                              const void *data);

/*
 * Adds a tensor without its bytes, for models too large to be held: append
 * gguf_writer_head(), which ends where the data begins, then write the
 * tensors' bytes in the order they were declared, each padded to a multiple of
 * the alignment.
 */
struct gguf_writer_tensor *gguf_writer_declare(struct gguf_writer *w, const char *name,
                                               uint32_t type, uint32_t n_dims,
                                               const uint64_t *dims);
void gguf_writer_head(const struct gguf_writer *w, struct str *out);

/* Appends the whole file. */
void gguf_writer_bytes(const struct gguf_writer *w, struct str *out);
/*
 * A new anonymous file; gguf_writer_fd_path() names it for gguf_open().  Where
 * all tensors are only declared their bytes are a hole.
 */
int gguf_writer_memfd(const struct gguf_writer *w);
char *gguf_writer_fd_path(int fd); /* a new string */
/* Writes path, which must not exist; ends the process when that fails. */
void gguf_writer_save(const struct gguf_writer *w, const char *path);
