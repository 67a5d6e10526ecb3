/* Opening a file and, when it is the first part of a split, all its parts; see gguf.h. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/alloc.h"
#include "daemon/gguf/gguf_priv.h"

/* What the split.* keys of one part say. */
struct split_keys {
    uint64_t no, count, n_tensors;
    bool has_no, has_count, has_n_tensors;
};

/* O_NONBLOCK: a FIFO in the place of a model must not stop the daemon. */
static int open_part(const char *path, struct gguf_part *ret_part, struct err *err)
{
    struct gguf_part p = {.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
    struct stat st;

    if (p.fd < 0)
        return err_set_errno(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, errno,
                             "cannot open model file '%.300s'", path);
    if (fstat(p.fd, &st) < 0) {
        int r = err_set_errno(err, ERR_IO, errno, "cannot look at '%.300s'", path);

        close(p.fd);
        return r;
    }
    if (!S_ISREG(st.st_mode)) {
        close(p.fd);
        return err_set(err, ERR_FORMAT, "'%.300s' is not a regular file", path);
    }
    p.bytes = (uint64_t)st.st_size;
    p.path = xstrdup(path);
    *ret_part = p;
    return 0;
}

static int read_split_keys(const struct gguf_table *t, struct split_keys *ret, struct err *err)
{
    int no = gguf_value_u64(gguf_table_find(t, "split.no"), 0, UINT16_MAX, &ret->no, err);
    int count, n;

    if (no < 0)
        return no;
    count = gguf_value_u64(gguf_table_find(t, "split.count"), 0, UINT16_MAX, &ret->count, err);
    if (count < 0)
        return count;
    n = gguf_value_u64(gguf_table_find(t, "split.tensors.count"), 0, INT32_MAX, &ret->n_tensors,
                       err);
    if (n < 0)
        return n;
    ret->has_no = no > 0;
    ret->has_count = count > 0;
    ret->has_n_tensors = n > 0;
    return 0;
}

/* Length of a path without "-00001-of-0000N.gguf", or -1 when it does not end so. */
static int stem_len(const char *path, unsigned count)
{
    char suffix[64];
    size_t len = strlen(path), n;

    n = (size_t)snprintf(suffix, sizeof suffix, "-00001-of-%05u.gguf", count);
    return len < n || strcmp(path + len - n, suffix) != 0 ? -1 : (int)(len - n);
}

/* The path of part i (from 0) of count, from that of the first. */
static char *part_path(const char *first, unsigned i, unsigned count)
{
    return xasprintf("%.*s-%05u-of-%05u.gguf", stem_len(first, count), first, i + 1, count);
}

/* Both tables, and the directory's array, which grows by halves and once is two. */
static size_t entries_bytes(const struct gguf_head *h)
{
    return ((size_t)h->n_values + 1) * sizeof(struct gguf_value) +
           map_bytes_for((size_t)h->n_values) +
           ((size_t)h->n_tensors * 3 + 16) * sizeof(struct gguf_tensor) +
           map_bytes_for((size_t)h->n_tensors);
}

/* Of n parts: all paths are as long as the first. */
static size_t parts_bytes(const char *first, unsigned n)
{
    return n * (sizeof(struct gguf_part) + strlen(first) + 1 + GGUF_HEAP_HEADER);
}

/* Reads part i, which is open: its metadata into ret_table, its directory onto the others. */
static int read_part(struct gguf *g, unsigned i, struct gguf_table *ret_table,
                     struct split_keys *ret_keys, struct err *err)
{
    const struct gguf_part *p = &g->parts[i];
    struct gguf_cursor *c = xmalloc(sizeof *c);
    struct gguf_table t = {0};
    struct gguf_head h;
    int r;

    gguf_cursor_init(c, p->path, p->fd, p->bytes);
    if ((r = gguf_read_head(c, &h, err)) < 0 ||
        (r = gguf_store_ask(&g->store, entries_bytes(&h), err)) < 0 ||
        (r = gguf_read_table(c, &h, &g->store, &t, err)) < 0 ||
        (r = read_split_keys(&t, ret_keys, err)) < 0 ||
        (r = gguf_read_directory(c, &h, &t, &g->store, i, p->bytes, &g->dir, err)) < 0)
        goto out;
    if (i == 0)
        g->version = h.version;
    *ret_table = t;
    t = (struct gguf_table){0};
out:
    gguf_cursor_forget(c);
    gguf_table_clear(&t);
    free(c);
    return r;
}

/* Checks the first part's own word; then 1 means that more parts belong to it. */
static int check_first(const struct gguf *g, const struct split_keys *k, struct err *err)
{
    const char *path = g->parts[0].path;

    if (!k->has_count || k->count <= 1) {
        if (k->has_no && k->no != 0)
            return err_set(err, ERR_FORMAT, "'%.200s' says it is part %" PRIu64 " of a single file",
                           path, k->no + 1);
        return 0;
    }
    if (!k->has_no || !k->has_n_tensors)
        return err_set(err, ERR_FORMAT, "'%.200s' is split but has no key '%s'", path,
                       k->has_no ? "split.tensors.count" : "split.no");
    if (k->no != 0)
        return err_set(err, ERR_FORMAT,
                       "'%.200s' is part %" PRIu64 " of %" PRIu64 "; open the first part", path,
                       k->no + 1, k->count);
    if (k->count > GGUF_MAX_PARTS)
        return err_set(err, ERR_UNSUPPORTED,
                       "'%.200s' is split into %" PRIu64 " parts; rnbd takes %u", path, k->count,
                       GGUF_MAX_PARTS);
    if (stem_len(path, (unsigned)k->count) < 0)
        return err_set(err, ERR_FORMAT,
                       "'%.200s' is the first of %" PRIu64 " parts, so its name must end in "
                       "-00001-of-%05" PRIu64 ".gguf",
                       path, k->count, k->count);
    return 1;
}

static int check_part(const struct gguf *g, unsigned i, const struct split_keys *first,
                      const struct split_keys *k, struct err *err)
{
    const char *path = g->parts[i].path;

    if (!k->has_no || k->no != i)
        return err_set(err, ERR_FORMAT, "'%.200s' does not say that it is part %u (split.no %u)",
                       path, i + 1, i);
    if (!k->has_count || k->count != first->count)
        return err_set(err, ERR_FORMAT, "'%.200s' does not belong to a split of %" PRIu64 " parts",
                       path, first->count);
    if (k->has_n_tensors && k->n_tensors != first->n_tensors)
        return err_set(err, ERR_FORMAT,
                       "'%.200s' belongs to a model of %" PRIu64 " tensors, its first part to one "
                       "of %" PRIu64,
                       path, k->n_tensors, first->n_tensors);
    return 0;
}

static int open_rest(struct gguf *g, const struct split_keys *first, struct err *err)
{
    unsigned count = (unsigned)first->count;

    if (gguf_store_ask(&g->store, parts_bytes(g->parts[0].path, count), err) < 0)
        return -ERR_NOMEM;
    g->parts = xreallocarray(g->parts, count, sizeof *g->parts);
    for (unsigned i = 1; i < count; i++) {
        char *path = part_path(g->parts[0].path, i, count);
        struct split_keys k = {0};
        struct gguf_table t = {0};
        int r = open_part(path, &g->parts[i], err);

        free(path);
        if (r < 0)
            return r;
        g->n_parts = i + 1;
        r = read_part(g, i, &t, &k, err);
        gguf_table_clear(&t);
        if (r == 0)
            r = check_part(g, i, first, &k, err);
        if (r < 0)
            return r;
    }
    if (g->dir.n != first->n_tensors)
        return err_set(
            err, ERR_FORMAT,
            "the %u parts of '%.200s' hold %zu tensors, but split.tensors.count is %" PRIu64, count,
            g->parts[0].path, g->dir.n, first->n_tensors);
    return 0;
}

int gguf_open(const char *path, struct gguf **ret_file, struct err *err)
{
    return gguf_open_within(path, NULL, ret_file, err);
}

int gguf_open_within(const char *path, const struct gguf_room *room, struct gguf **ret_file,
                     struct err *err)
{
    struct gguf *g = XNEW(struct gguf);
    struct split_keys keys = {0};
    int r;

    if (room)
        g->store.room = *room;
    g->parts = XNEW(struct gguf_part);
    r = gguf_store_ask(&g->store, sizeof *g + parts_bytes(path, 1), err);
    if (r >= 0)
        r = open_part(path, &g->parts[0], err);
    if (r < 0)
        goto out;
    g->n_parts = 1;
    if ((r = read_part(g, 0, &g->table, &keys, err)) < 0 || (r = check_first(g, &keys, err)) < 0)
        goto out;
    if (r > 0 && (r = open_rest(g, &keys, err)) < 0)
        goto out;
    g->store.room = (struct gguf_room){0};
    *ret_file = g;
    g = NULL;
out:
    gguf_close(g);
    return r;
}

void gguf_close(struct gguf *g)
{
    if (!g)
        return;
    for (unsigned i = 0; i < g->n_parts; i++) {
        close(g->parts[i].fd);
        free(g->parts[i].path);
    }
    free(g->parts);
    gguf_table_clear(&g->table);
    gguf_directory_clear(&g->dir);
    gguf_store_clear(&g->store);
    free(g);
}

const char *gguf_path(const struct gguf *g, unsigned part)
{
    return g->parts[part].path;
}

unsigned gguf_parts(const struct gguf *g)
{
    return g->n_parts;
}

int gguf_fd(const struct gguf *g, unsigned part)
{
    return g->parts[part].fd;
}

uint64_t gguf_file_bytes(const struct gguf *g)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < g->n_parts; i++)
        bytes += g->parts[i].bytes;
    return bytes;
}

unsigned gguf_version(const struct gguf *g)
{
    return g->version;
}

size_t gguf_memory_bytes(const struct gguf *g)
{
    return sizeof *g + g->store.bytes + parts_bytes(g->parts[0].path, g->n_parts) +
           (g->table.n + 1) * sizeof *g->table.values + map_bytes(g->table.by_key) +
           g->dir.cap * sizeof *g->dir.tensors + map_bytes(g->dir.by_name);
}

size_t gguf_n_values(const struct gguf *g)
{
    return g->table.n;
}

const struct gguf_value *gguf_value_at(const struct gguf *g, size_t i)
{
    return &g->table.values[i];
}

const struct gguf_value *gguf_find(const struct gguf *g, const char *key)
{
    return gguf_table_find(&g->table, key);
}
