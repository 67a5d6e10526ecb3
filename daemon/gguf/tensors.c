/* The directory of tensors: shapes, sizes, places; see gguf.h. */
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/alloc.h"
#include "daemon/gguf/gguf_priv.h"

#define ALIGNMENT_DEFAULT 32u
#define ALIGNMENT_MIN     8u
#define ALIGNMENT_MAX     65536u

static int read_alignment(const struct gguf_cursor *c, const struct gguf_table *t,
                          uint64_t *ret_alignment, struct err *err)
{
    uint64_t a = ALIGNMENT_DEFAULT;
    int r = gguf_value_u64(gguf_table_find(t, "general.alignment"), 0, UINT64_MAX, &a, err);

    if (r < 0)
        return r;
    if (a < ALIGNMENT_MIN || a > ALIGNMENT_MAX || (a & (a - 1)) != 0)
        return gguf_cursor_fail(c, err, ERR_FORMAT,
                                "has general.alignment %" PRIu64
                                "; it must be a power of two from %u to %u",
                                a, ALIGNMENT_MIN, ALIGNMENT_MAX);
    *ret_alignment = a;
    return 0;
}

static int read_dims(struct gguf_cursor *c, struct gguf_tensor *t, struct err *err)
{
    uint32_t n_dims;
    uint64_t product = 1;
    int r = gguf_cursor_u32(c, &n_dims, err);

    if (r < 0)
        return r;
    if (n_dims < 1 || n_dims > 4)
        return gguf_cursor_fail(c, err, ERR_FORMAT,
                                "tensor '%.*s' has %" PRIu32 " dimensions; rnbd takes 1 to 4",
                                SHOWN(t->name), n_dims);
    t->n_dims = n_dims;
    for (unsigned i = 0; i < 4; i++) {
        t->dims[i] = 1;
        if (i < n_dims && (r = gguf_cursor_u64(c, &t->dims[i], err)) < 0)
            return r;
        if (t->dims[i] < 1)
            return gguf_cursor_fail(c, err, ERR_FORMAT, "tensor '%.*s' has a dimension of 0",
                                    SHOWN(t->name));
        if (__builtin_mul_overflow(product, t->dims[i], &product) || product > INT64_MAX)
            return gguf_cursor_fail(c, err, ERR_FORMAT, "tensor '%.*s' has more than 2^63 elements",
                                    SHOWN(t->name));
    }
    return 0;
}

static int read_format(struct gguf_cursor *c, struct gguf_tensor *t, struct err *err)
{
    uint32_t type;
    uint64_t n = t->dims[0] * t->dims[1] * t->dims[2] * t->dims[3]; /* read_dims: no overflow */
    int r = gguf_cursor_u32(c, &type, err);

    if (r < 0)
        return r;
    t->fmt = format_of_gguf(type);
    if (!t->fmt)
        return gguf_cursor_fail(
            c, err, ERR_UNSUPPORTED,
            "tensor '%.*s' is of type %" PRIu32
            ", which does not exist, was removed from the format, or is not known",
            SHOWN(t->name), type);
    if (t->dims[0] % t->fmt->block_elems != 0)
        return gguf_cursor_fail(c, err, ERR_FORMAT,
                                "tensor '%.*s' has rows of %" PRIu64
                                " elements, but %s comes in blocks "
                                "of %" PRIu32,
                                SHOWN(t->name), t->dims[0], t->fmt->name, t->fmt->block_elems);
    if (__builtin_mul_overflow(n / t->fmt->block_elems, (uint64_t)t->fmt->block_bytes, &t->bytes) ||
        t->bytes > INT64_MAX)
        return gguf_cursor_fail(c, err, ERR_FORMAT, "tensor '%.*s' is larger than 2^63 bytes",
                                SHOWN(t->name));
    return 0;
}

static int read_tensor(struct gguf_cursor *c, struct gguf_store *s, struct gguf_tensor *t,
                       struct err *err)
{
    int r = gguf_cursor_string(c, s, GGUF_NAME_MAX, "a tensor name", &t->name, err);

    if (r < 0)
        return r;
    if (t->name.len == 0)
        return gguf_cursor_fail(c, err, ERR_FORMAT, "has a tensor without a name");
    if (!gguf_is_name(t->name))
        return gguf_cursor_fail(c, err, ERR_FORMAT, "has a tensor name that is not text");
    if ((r = read_dims(c, t, err)) < 0 || (r = read_format(c, t, err)) < 0)
        return r;
    return gguf_cursor_u64(c, &t->offset, err);
}

/* Turns the offset in the data part into one in the file, after it has been proven. */
static int place_tensor(const struct gguf_cursor *c, struct gguf_tensor *t, uint64_t data_start,
                        uint64_t file_bytes, uint64_t alignment, struct err *err)
{
    uint64_t data_bytes = file_bytes > data_start ? file_bytes - data_start : 0;

    if (t->offset % alignment != 0)
        return gguf_cursor_fail(c, err, ERR_FORMAT,
                                "tensor '%.*s' is at offset %" PRIu64
                                ", which is not a multiple of the alignment %" PRIu64,
                                SHOWN(t->name), t->offset, alignment);
    if (t->offset > data_bytes || t->bytes > data_bytes - t->offset)
        return gguf_cursor_fail(c, err, ERR_FORMAT,
                                "tensor '%.*s' ends past the end of the file: it needs %" PRIu64
                                " bytes at offset %" PRIu64 " of %" PRIu64
                                "; the file is cut off or damaged, fetch it again",
                                SHOWN(t->name), t->bytes, t->offset, data_bytes);
    t->offset += data_start;
    return 0;
}

static int by_offset(const void *a, const void *b)
{
    const struct gguf_tensor *x = *(const struct gguf_tensor *const *)a;
    const struct gguf_tensor *y = *(const struct gguf_tensor *const *)b;

    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int check_overlap(const struct gguf_cursor *c, const struct gguf_tensor *tensors, size_t n,
                         struct err *err)
{
    const struct gguf_tensor **order = xreallocarray(NULL, n + 1, sizeof *order);
    int r = 0;

    for (size_t i = 0; i < n; i++)
        order[i] = &tensors[i];
    qsort(order, n, sizeof(*order), by_offset);
    for (size_t i = 1; i < n && r == 0; i++)
        if (order[i - 1]->offset + order[i - 1]->bytes > order[i]->offset)
            r = gguf_cursor_fail(c, err, ERR_FORMAT, "tensors '%.*s' and '%.*s' overlap",
                                 SHOWN(order[i - 1]->name), SHOWN(order[i]->name));
    free(order);
    return r;
}

int gguf_read_directory(struct gguf_cursor *c, const struct gguf_head *h,
                        const struct gguf_table *t, struct gguf_store *s, unsigned part,
                        uint64_t file_bytes, struct gguf_directory *dir, struct err *err)
{
    size_t first = dir->n, n = (size_t)h->n_tensors;
    uint64_t alignment = 0, data_start;
    int r = read_alignment(c, t, &alignment, err);

    if (r < 0)
        return r;
    if (n > GGUF_MAX_TENSORS - first)
        return gguf_cursor_fail(c, err, ERR_FORMAT, "has more than %u tensors in all its parts",
                                GGUF_MAX_TENSORS);
    if (!dir->by_name)
        dir->by_name = map_create_borrowing();
    ARRAY_GROW(dir->tensors, first + n + 1, dir->cap);
    for (size_t i = first; i < first + n; i++) {
        struct gguf_tensor *x = &dir->tensors[i];

        *x = (struct gguf_tensor){.part = part};
        r = read_tensor(c, s, x, err);
        if (r < 0)
            return r;
        /* The index, not the address: the array moves as parts are added. */
        if (!map_add(dir->by_name, x->name.p, x->name.len, (void *)(uintptr_t)(i + 1)))
            return gguf_cursor_fail(c, err, ERR_FORMAT, "has the tensor '%.*s' twice",
                                    SHOWN(x->name));
        dir->n = i + 1;
    }
    data_start = (c->pos + alignment - 1) / alignment * alignment;
    for (size_t i = first; i < dir->n; i++) {
        r = place_tensor(c, &dir->tensors[i], data_start, file_bytes, alignment, err);
        if (r < 0)
            return r;
    }
    return check_overlap(c, dir->tensors + first, n, err);
}

void gguf_directory_clear(struct gguf_directory *d)
{
    free(d->tensors);
    map_destroy(d->by_name, NULL);
    *d = (struct gguf_directory){0};
}

size_t gguf_n_tensors(const struct gguf *g)
{
    return g->dir.n;
}

const struct gguf_tensor *gguf_tensor_at(const struct gguf *g, size_t i)
{
    return &g->dir.tensors[i];
}

const struct gguf_tensor *gguf_find_tensor(const struct gguf *g, const char *name)
{
    uintptr_t i = (uintptr_t)map_gets(g->dir.by_name, name);

    return i ? &g->dir.tensors[i - 1] : NULL;
}
