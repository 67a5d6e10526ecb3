/*
 * gguf_priv - what the files of this room share: the cursor that reads a
 * hostile file front to back, the store that owns what was read, and the
 * parts of struct gguf.
 *
 * The cursor is the only code that reads the file, always by pread into own
 * memory: a file that is cut short while it is read is an error, never a
 * signal.  gguf_cursor_left() is what every count and length is checked against
 * before it sizes anything.
 *
 * Any one thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/map.h"
#include "common/str.h"
#include "daemon/gguf/gguf.h"

/* Metadata of real models is below 32 MiB; the limits keep a hostile file's cost small. */
#define GGUF_META_MAX_BYTES ((uint64_t)128 << 20)
#define GGUF_MAX_VALUES     65536u
#define GGUF_MAX_TENSORS    262144u
#define GGUF_MAX_PARTS      1024u
#define GGUF_KEY_MAX        65535u
#define GGUF_NAME_MAX       63u

/* What malloc puts before a block, and loses behind it. */
#define GGUF_HEAP_HEADER ((size_t)24)

/* Blocks that live as long as the file; nothing is freed singly. */
struct gguf_store {
    struct gguf_store_block *blocks;
    size_t bytes;
    struct gguf_room room; /* reserve NULL: none */
};

/* NULL: there was no room, and err says so; never for 0. */
void *gguf_store_alloc(struct gguf_store *s, size_t bytes, size_t align, struct err *err);
/* For what lies outside the store. */
int gguf_store_ask(const struct gguf_store *s, size_t bytes, struct err *err);
void gguf_store_clear(struct gguf_store *s);

struct gguf_cursor {
    const char *path;
    int fd;
    uint64_t pos; /* of the next byte to hand out */
    uint64_t end; /* size of the file when it was opened, or the limit on metadata */
    bool capped;  /* end is the limit, not the size */
    uint64_t own; /* from here on the page cache is of its reads; UINT64_MAX: all was there */
    size_t at, filled;
    unsigned char buf[65536];
};

void gguf_cursor_init(struct gguf_cursor *c, const char *path, int fd, uint64_t file_bytes);
/* Gives back the page cache that reading took; what was there before stays. */
void gguf_cursor_forget(const struct gguf_cursor *c);
uint64_t gguf_cursor_left(const struct gguf_cursor *c);
int gguf_cursor_read(struct gguf_cursor *c, void *out, size_t n, struct err *err);
int gguf_cursor_u32(struct gguf_cursor *c, uint32_t *ret, struct err *err);
int gguf_cursor_u64(struct gguf_cursor *c, uint64_t *ret, struct err *err);
/* A string of at most max bytes, copied into the store; what names it in the error. */
int gguf_cursor_string(struct gguf_cursor *c, struct gguf_store *s, uint64_t max, const char *what,
                       struct view *ret, struct err *err);
/* err_set with the file's path in front. */
int gguf_cursor_fail(const struct gguf_cursor *c, struct err *err, enum err_kind kind,
                     const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* One file of a split, or the only one. */
struct gguf_part {
    char *path;
    int fd;
    uint64_t bytes;
};

/* The metadata of one part. */
struct gguf_table {
    struct gguf_value *values;
    size_t n;
    struct map *by_key; /* → struct gguf_value; keys are in the store */
};

void gguf_table_clear(struct gguf_table *t);
const struct gguf_value *gguf_table_find(const struct gguf_table *t, const char *key);

/* The directories of all parts so far. */
struct gguf_directory {
    struct gguf_tensor *tensors;
    size_t n, cap;
    struct map *by_name; /* → index + 1; names are in the store */
};

struct gguf {
    struct gguf_part *parts;
    unsigned n_parts;
    unsigned version;
    struct gguf_table table; /* of the first part */
    struct gguf_directory dir;
    struct gguf_store store;
};

struct gguf_head {
    uint32_t version;
    uint64_t n_tensors;
    uint64_t n_values;
};

/* reader.c: magic, version, counts; then the metadata. */
int gguf_read_head(struct gguf_cursor *c, struct gguf_head *ret_head, struct err *err);
int gguf_read_table(struct gguf_cursor *c, const struct gguf_head *h, struct gguf_store *s,
                    struct gguf_table *ret_table, struct err *err);

/* tensors.c: appends the directory of one part, which ends at the cursor's place. */
int gguf_read_directory(struct gguf_cursor *c, const struct gguf_head *h,
                        const struct gguf_table *t, struct gguf_store *s, unsigned part,
                        uint64_t file_bytes, struct gguf_directory *dir, struct err *err);
void gguf_directory_clear(struct gguf_directory *d);

/* value.c: the same as gguf_get_u64, on a table that is not (yet) the file's. */
int gguf_value_u64(const struct gguf_value *v, uint64_t lo, uint64_t hi, uint64_t *out,
                   struct err *err);

size_t gguf_type_bytes(enum gguf_type t); /* of one number; 0 for strings and arrays */

/* Names from a file in messages: "%.*s", SHOWN(view).  Cut to 100 bytes, never inside a character. */
#define SHOWN(v) gguf_shown_len(v), (v).p
int gguf_shown_len(struct view v);
/* Names are text: valid UTF-8 without control characters, so that messages can carry them. */
bool gguf_is_name(struct view v);
