/*
 * gguf_priv - what the files of this room share: the cursor that reads a
 * hostile file front to back, the store that owns what was read, and the
 * parts of struct gguf.
 *
 * The cursor is the only code that reads the file, always by pread into own
 * memory: a file that is cut short while it is read is an error, never a
 * signal.  cursor_left() is what every count and length is checked against
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

/* Blocks that live as long as the file; nothing is freed singly. */
struct store {
    struct store_block *blocks;
    size_t bytes;
};

void *store_alloc(struct store *s, size_t bytes, size_t align); /* never NULL, also for 0 */
void store_clear(struct store *s);

struct cursor {
    const char *path;
    int fd;
    uint64_t pos; /* of the next byte to hand out */
    uint64_t end; /* size of the file when it was opened, or the limit on metadata */
    bool capped;  /* end is the limit, not the size */
    size_t at, filled;
    unsigned char buf[65536];
};

void cursor_init(struct cursor *c, const char *path, int fd, uint64_t file_bytes);
uint64_t cursor_left(const struct cursor *c);
int cursor_read(struct cursor *c, void *out, size_t n, struct err *err);
int cursor_u32(struct cursor *c, uint32_t *ret, struct err *err);
int cursor_u64(struct cursor *c, uint64_t *ret, struct err *err);
/* A string of at most max bytes, copied into the store; what names it in the error. */
int cursor_string(struct cursor *c, struct store *s, uint64_t max, const char *what,
                  struct view *ret, struct err *err);
/* err_set with the file's path in front. */
int cursor_fail(const struct cursor *c, struct err *err, enum err_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* One file of a split, or the only one. */
struct part {
    char *path;
    int fd;
    uint64_t bytes;
};

/* The metadata of one part. */
struct table {
    struct gguf_value *values;
    size_t n;
    struct map *by_key; /* → struct gguf_value */
};

void table_clear(struct table *t);
const struct gguf_value *table_find(const struct table *t, const char *key);

/* The directories of all parts so far. */
struct directory {
    struct gguf_tensor *tensors;
    size_t n, cap;
    struct map *by_name; /* → index + 1 */
};

struct gguf {
    struct part *parts;
    unsigned n_parts;
    unsigned version;
    struct table table; /* of the first part */
    struct directory dir;
    struct store store;
};

struct head {
    uint32_t version;
    uint64_t n_tensors;
    uint64_t n_values;
};

/* reader.c: magic, version, counts; then the metadata. */
int read_head(struct cursor *c, struct head *ret_head, struct err *err);
int read_table(struct cursor *c, const struct head *h, struct store *s, struct table *ret_table,
               struct err *err);

/* tensors.c: appends the directory of one part, which ends at the cursor's place. */
int read_directory(struct cursor *c, const struct head *h, const struct table *t, struct store *s,
                   unsigned part, uint64_t file_bytes, struct directory *dir, struct err *err);
void directory_clear(struct directory *d);

/* value.c: the same as gguf_get_u64, on a table that is not (yet) the file's. */
int value_get_u64(const struct gguf_value *v, uint64_t lo, uint64_t hi, uint64_t *out,
                  struct err *err);

size_t gguf_type_bytes(enum gguf_type t); /* of one number; 0 for strings and arrays */

/* Names from a file in messages: "%.*s", SHOWN(view). */
#define SHOWN(v) (int)((v).len < 100 ? (v).len : 100), (v).p
