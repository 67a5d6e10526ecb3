/* Block reads by pread, direct or buffered.  See stream.h. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/alloc.h"
#include "daemon/memory/stream.h"

struct part {
    int fd;        /* the caller's: buffered */
    int direct_fd; /* our own, −1: not tried or not allowed */
    bool tried;
};

struct stream {
    struct stream_engine engine;
    struct part *parts;
    unsigned n_parts;
    char *block;   /* STREAM_BLOCK bytes, page-aligned */
    unsigned part; /* whose bytes are in it */
    uint64_t from; /* offset of its first byte */
    size_t have;   /* valid bytes in it */
    size_t n_read;
};

static ssize_t system_pread(void *arg, int fd, void *buf, size_t n, off_t offset)
{
    (void)arg;
    return pread(fd, buf, n, offset);
}

size_t stream_staging_bytes(void)
{
    return alloc_page_round(STREAM_BLOCK);
}

int stream_create(const int *fds, unsigned n_parts, const struct stream_engine *engine,
                  struct stream **ret, struct err *err)
{
    struct stream *s = XNEW(struct stream);

    if (engine)
        s->engine = *engine;
    if (!s->engine.pread)
        s->engine.pread = system_pread;
    s->parts = XNEW_ARRAY(struct part, n_parts);
    s->n_parts = n_parts;
    for (unsigned i = 0; i < n_parts; i++)
        s->parts[i] = (struct part){.fd = fds[i], .direct_fd = -1};
    s->block = alloc_pages(STREAM_BLOCK, 0);
    if (!s->block) {
        stream_destroy(s);
        return err_set(err, ERR_NOMEM, "the kernel has no %zu bytes for a read buffer",
                       STREAM_BLOCK);
    }
    *ret = s;
    return 0;
}

void stream_destroy(struct stream *s)
{
    if (!s)
        return;
    for (unsigned i = 0; i < s->n_parts; i++)
        if (s->parts[i].direct_fd >= 0)
            close(s->parts[i].direct_fd);
    if (s->block)
        free_pages(s->block, STREAM_BLOCK);
    free(s->parts);
    free(s);
}

size_t stream_bytes_read(const struct stream *s)
{
    return s->n_read;
}

bool stream_is_direct(const struct stream *s)
{
    return s->parts[s->part].direct_fd >= 0;
}

/* A second description of the same file, for direct reads: through the link in /proc, so that
 * a path that now leads elsewhere cannot mix two files. */
static void try_direct(struct stream *s, struct part *p)
{
    char link[64];

    if (p->tried || s->engine.no_direct)
        return;
    p->tried = true;
    snprintf(link, sizeof link, "/proc/self/fd/%d", p->fd);
    p->direct_fd = open(link, O_RDONLY | O_DIRECT | O_CLOEXEC);
}

static void drop_direct(struct part *p)
{
    close(p->direct_fd);
    p->direct_fd = -1;
}

/* Reads up to n bytes by fd; loops over EINTR alone. */
static ssize_t read_once(struct stream *s, int fd, void *buf, size_t n, uint64_t offset)
{
    ssize_t got;

    do
        got = s->engine.pread(s->engine.arg, fd, buf, n, (off_t)offset);
    while (got < 0 && errno == EINTR);
    if (got > 0)
        s->n_read += (size_t)got;
    return got;
}

/*
 * Fills the block with [from, from + want).  A direct read that falls short
 * would have to go on at an odd offset, so the rest is read buffered.
 */
static int fill(struct stream *s, struct part *p, uint64_t from, size_t want, const char *name,
                struct err *err)
{
    ssize_t got = 0;
    bool buffered = false;

    s->have = 0;
    s->from = from;
    try_direct(s, p);
    if (p->direct_fd >= 0) {
        size_t whole = (want + STREAM_ALIGN - 1) / STREAM_ALIGN * STREAM_ALIGN;

        got = read_once(s, p->direct_fd, s->block, whole, from);
        if (got < 0 && errno == EINVAL) {
            drop_direct(p); /* the file system says no only now */
        } else if (got < 0) {
            goto failed;
        } else {
            s->have = MIN((size_t)got, want);
        }
    }
    while (s->have < want) {
        buffered = true;
        got = read_once(s, p->fd, s->block + s->have, want - s->have, from + s->have);
        if (got < 0)
            goto failed;
        if (got == 0)
            break; /* who wants bytes past here is told by stream_read */
        s->have += (size_t)got;
    }
    if (buffered)
        posix_fadvise(p->fd, (off_t)from, (off_t)want, POSIX_FADV_DONTNEED);
    return 0;
failed:
    s->have = 0;
    err_set_errno(err, ERR_IO, errno, "reading tensor '%s' failed", name);
    if (err)
        snprintf(err->param, sizeof err->param, "%s", name);
    return -ERR_IO;
}

int stream_read(struct stream *s, unsigned part, uint64_t offset, size_t bytes, uint64_t limit,
                void *dst, const char *name, struct err *err)
{
    struct part *p = &s->parts[part];
    char *out = dst;

    while (bytes) {
        size_t skip, n;

        if (s->part != part || offset < s->from || offset >= s->from + s->have) {
            uint64_t from = offset / STREAM_ALIGN * STREAM_ALIGN;
            uint64_t end = MAX(limit, offset + bytes);
            int r;

            s->part = part;
            r = fill(s, p, from, (size_t)MIN((uint64_t)STREAM_BLOCK, end - from), name, err);
            if (r < 0)
                return r;
            if (offset >= s->from + s->have)
                return err_set_param(
                    err, ERR_IO, name,
                    "the file ends at byte %llu, before the end of tensor '%s': it "
                    "was cut after it was opened",
                    (unsigned long long)(s->from + s->have), name);
        }
        skip = (size_t)(offset - s->from);
        n = MIN(bytes, s->have - skip);
        memcpy(out, s->block + skip, n);
        out += n;
        offset += n;
        bytes -= n;
    }
    return 0;
}
