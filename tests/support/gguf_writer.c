/* Makes GGUF files for tests; see gguf_writer.h. */
#include "tests/support/gguf_writer.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/alloc.h"

#define ALIGNMENT_DEFAULT 32u

static void add_u32(struct str *s, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        str_addc(s, (char)(v >> 8 * i));
}

static void add_u64(struct str *s, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        str_addc(s, (char)(v >> 8 * i));
}

static void add_string(struct str *s, struct view v)
{
    add_u64(s, v.len);
    str_add(s, v.p, v.len);
}

static size_t type_bytes(enum gguf_type type)
{
    switch (type) {
    case GGUF_U8:
    case GGUF_I8:
    case GGUF_BOOL: return 1;
    case GGUF_U16:
    case GGUF_I16: return 2;
    case GGUF_U32:
    case GGUF_I32:
    case GGUF_F32: return 4;
    default: return 8;
    }
}

void gguf_writer_clear(struct gguf_writer *w)
{
    for (size_t i = 0; i < w->n_tensors; i++)
        free(w->tensors[i].data);
    free(w->tensors);
    str_clear(&w->meta);
    *w = (struct gguf_writer){0};
}

void gguf_writer_begin(struct gguf_writer *w, struct view key, uint32_t type)
{
    add_string(&w->meta, key);
    add_u32(&w->meta, type);
    w->n_values++;
}

void gguf_writer_raw(struct gguf_writer *w, const void *bytes, size_t n)
{
    str_add(&w->meta, bytes, n);
}

void gguf_writer_raw_u32(struct gguf_writer *w, uint32_t value)
{
    add_u32(&w->meta, value);
}

void gguf_writer_raw_u64(struct gguf_writer *w, uint64_t value)
{
    add_u64(&w->meta, value);
}

void gguf_writer_int(struct gguf_writer *w, const char *key, enum gguf_type type, int64_t value)
{
    gguf_writer_begin(w, view_of(key), type);
    for (size_t i = 0; i < type_bytes(type); i++)
        str_addc(&w->meta, (char)((uint64_t)value >> 8 * i));
}

void gguf_writer_u32(struct gguf_writer *w, const char *key, uint32_t value)
{
    gguf_writer_int(w, key, GGUF_U32, value);
}

void gguf_writer_u64(struct gguf_writer *w, const char *key, uint64_t value)
{
    gguf_writer_int(w, key, GGUF_U64, (int64_t)value);
}

void gguf_writer_f32(struct gguf_writer *w, const char *key, float value)
{
    gguf_writer_begin(w, view_of(key), GGUF_F32);
    str_add(&w->meta, &value, sizeof value);
}

void gguf_writer_f64(struct gguf_writer *w, const char *key, double value)
{
    gguf_writer_begin(w, view_of(key), GGUF_F64);
    str_add(&w->meta, &value, sizeof value);
}

void gguf_writer_bool(struct gguf_writer *w, const char *key, bool value)
{
    gguf_writer_int(w, key, GGUF_BOOL, value);
}

void gguf_writer_string(struct gguf_writer *w, const char *key, const char *value)
{
    gguf_writer_begin(w, view_of(key), GGUF_STRING);
    add_string(&w->meta, view_of(value));
}

static void begin_array(struct gguf_writer *w, const char *key, enum gguf_type elem_type, size_t n)
{
    gguf_writer_begin(w, view_of(key), GGUF_ARRAY);
    add_u32(&w->meta, elem_type);
    add_u64(&w->meta, n);
}

void gguf_writer_strings(struct gguf_writer *w, const char *key, const char *const *values,
                         size_t n)
{
    begin_array(w, key, GGUF_STRING, n);
    for (size_t i = 0; i < n; i++)
        add_string(&w->meta, view_of(values[i]));
}

void gguf_writer_views(struct gguf_writer *w, const char *key, const struct view *values, size_t n)
{
    begin_array(w, key, GGUF_STRING, n);
    for (size_t i = 0; i < n; i++)
        add_string(&w->meta, values[i]);
}

void gguf_writer_array(struct gguf_writer *w, const char *key, enum gguf_type elem_type,
                       const void *values, size_t n)
{
    begin_array(w, key, elem_type, n);
    str_add(&w->meta, values, n * type_bytes(elem_type));
}

struct gguf_writer_tensor *gguf_writer_tensor(struct gguf_writer *w, const char *name,
                                              uint32_t type, uint32_t n_dims, const uint64_t *dims,
                                              const void *data)
{
    struct gguf_writer_tensor *t = gguf_writer_declare(w, name, type, n_dims, dims);

    t->data = data ? xmemdup(data, t->bytes) : xcalloc(t->bytes, 1);
    return t;
}

struct gguf_writer_tensor *gguf_writer_declare(struct gguf_writer *w, const char *name,
                                               uint32_t type, uint32_t n_dims, const uint64_t *dims)
{
    const struct format *fmt = format_of_gguf(type);
    struct gguf_writer_tensor *t;
    uint64_t n = 1;

    ARRAY_GROW(w->tensors, w->n_tensors + 1, w->cap_tensors);
    t = &w->tensors[w->n_tensors++];
    *t = (struct gguf_writer_tensor){.type = type, .n_dims = n_dims, .name_len = strlen(name)};
    snprintf(t->name, sizeof t->name, "%s", name);
    for (uint32_t i = 0; i < n_dims; i++) {
        t->dims[i] = dims[i];
        n *= dims[i];
    }
    t->bytes = fmt ? format_row_bytes(fmt, n) : n;
    return t;
}

static void pad(struct str *s, size_t start, size_t alignment)
{
    while ((s->len - start) % alignment)
        str_addc(s, 0);
}

void gguf_writer_head(const struct gguf_writer *w, struct str *out)
{
    size_t start = out->len, alignment = w->alignment ? w->alignment : ALIGNMENT_DEFAULT;
    uint64_t offset = 0;

    str_adds(out, "GGUF");
    add_u32(out, w->version ? w->version : 3);
    add_u64(out, w->n_tensors + (uint64_t)w->extra_tensors);
    add_u64(out, w->n_values + (uint64_t)w->extra_values);
    str_add(out, w->meta.p, w->meta.len);
    for (size_t i = 0; i < w->n_tensors; i++) {
        const struct gguf_writer_tensor *t = &w->tensors[i];

        add_string(out, (struct view){t->name, t->name_len});
        add_u32(out, t->n_dims);
        for (uint32_t d = 0; d < t->n_dims && d < ARRAY_LEN(t->dims); d++)
            add_u64(out, t->dims[d]);
        add_u32(out, t->type);
        add_u64(out, t->fixed_offset ? t->offset : offset);
        offset = (offset + t->bytes + alignment - 1) / alignment * alignment;
    }
    if (w->n_tensors)
        pad(out, start, alignment);
}

void gguf_writer_bytes(const struct gguf_writer *w, struct str *out)
{
    size_t start = out->len, alignment = w->alignment ? w->alignment : ALIGNMENT_DEFAULT;

    gguf_writer_head(w, out);
    for (size_t i = 0; i < w->n_tensors; i++) {
        pad(out, start, alignment);
        str_add(out, w->tensors[i].data, w->tensors[i].bytes);
    }
    for (size_t i = 0; i < w->trailing_bytes; i++)
        str_addc(out, 0);
    str_truncate(out, out->len - MIN(w->cut_bytes, out->len - start));
}

static void write_all(int fd, const struct str *s)
{
    for (size_t done = 0; done < s->len;) {
        ssize_t n = write(fd, s->p + done, s->len - done);

        if (n < 0) {
            perror("gguf_writer: write");
            abort();
        }
        done += (size_t)n;
    }
}

/* All of its tensors are only declared: such a file is a head and a hole. */
static bool is_hollow(const struct gguf_writer *w)
{
    for (size_t i = 0; i < w->n_tensors; i++)
        if (w->tensors[i].data)
            return false;
    return w->n_tensors > 0;
}

static size_t data_bytes(const struct gguf_writer *w)
{
    size_t alignment = w->alignment ? w->alignment : ALIGNMENT_DEFAULT, sum = 0;

    for (size_t i = 0; i < w->n_tensors; i++)
        sum += (w->tensors[i].bytes + alignment - 1) / alignment * alignment;
    return sum;
}

int gguf_writer_memfd(const struct gguf_writer *w)
{
    struct str bytes = {0};
    int fd = memfd_create("gguf", MFD_CLOEXEC);

    if (fd < 0) {
        perror("gguf_writer: memfd_create");
        abort();
    }
    if (is_hollow(w))
        gguf_writer_head(w, &bytes);
    else
        gguf_writer_bytes(w, &bytes);
    write_all(fd, &bytes);
    if (is_hollow(w) && ftruncate(fd, (off_t)(bytes.len + data_bytes(w))) < 0) {
        perror("gguf_writer: ftruncate");
        abort();
    }
    str_clear(&bytes);
    return fd;
}

char *gguf_writer_fd_path(int fd)
{
    return xasprintf("/proc/self/fd/%d", fd);
}

void gguf_writer_save(const struct gguf_writer *w, const char *path)
{
    struct str bytes = {0};
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

    if (fd < 0) {
        perror(path);
        abort();
    }
    gguf_writer_bytes(w, &bytes);
    write_all(fd, &bytes);
    close(fd);
    str_clear(&bytes);
}
