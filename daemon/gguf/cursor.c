/* The cursor and the store; see gguf_priv.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/alloc.h"
#include "daemon/gguf/gguf_priv.h"

#define STORE_BLOCK_BYTES 65536u

struct store_block {
    struct store_block *next;
    size_t used, cap;
    _Alignas(16) unsigned char bytes[];
};

void *store_alloc(struct store *s, size_t bytes, size_t align)
{
    struct store_block *b = s->blocks;
    size_t at = b ? (b->used + align - 1) / align * align : 0;

    if (!b || at > b->cap || bytes > b->cap - at) {
        size_t cap = MAX(bytes, STORE_BLOCK_BYTES);

        /* A large thing gets a block of its own behind the first, which stays open for small ones. */
        b = xmalloc(sizeof *b + cap);
        b->cap = cap;
        b->used = 0;
        at = 0;
        if (s->blocks && bytes >= STORE_BLOCK_BYTES) {
            b->next = s->blocks->next;
            s->blocks->next = b;
        } else {
            b->next = s->blocks;
            s->blocks = b;
        }
        s->bytes += sizeof *b + cap;
    }
    b->used = at + bytes;
    return b->bytes + at;
}

void store_clear(struct store *s)
{
    struct store_block *b = s->blocks;

    while (b) {
        struct store_block *next = b->next;

        free(b);
        b = next;
    }
    *s = (struct store){0};
}

void cursor_init(struct cursor *c, const char *path, int fd, uint64_t file_bytes)
{
    c->path = path;
    c->fd = fd;
    c->pos = 0;
    c->capped = file_bytes > GGUF_META_MAX_BYTES;
    c->end = c->capped ? GGUF_META_MAX_BYTES : file_bytes;
    c->at = 0;
    c->filled = 0;
}

uint64_t cursor_left(const struct cursor *c)
{
    return c->end - c->pos;
}

int cursor_fail(const struct cursor *c, struct err *err, enum err_kind kind, const char *fmt, ...)
{
    char text[400];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return err_set(err, kind, "'%.100s' %s", c->path, text);
}

/* Reads up to n bytes at the place where the buffer ends; 0 is the end of a file that has shrunk. */
static int pread_some(struct cursor *c, void *out, size_t n, size_t *ret_got, struct err *err)
{
    ssize_t got;

    do
        got = pread(c->fd, out, n, (off_t)c->pos);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return err_set_errno(err, ERR_IO, errno, "cannot read '%.200s'", c->path);
    if (got == 0)
        return cursor_fail(c, err, ERR_FORMAT, "became shorter while it was read");
    *ret_got = (size_t)got;
    return 0;
}

int cursor_read(struct cursor *c, void *out, size_t n, struct err *err)
{
    unsigned char *p = out;

    if (n > cursor_left(c)) {
        if (c->capped)
            return cursor_fail(c, err, ERR_UNSUPPORTED,
                               "has more than %" PRIu64 " MiB of metadata, which rnbd refuses",
                               GGUF_META_MAX_BYTES >> 20);
        return cursor_fail(c, err, ERR_FORMAT,
                           "is cut off: its metadata goes on past byte %" PRIu64
                           ", where the file ends; fetch it again",
                           c->end);
    }
    while (n) {
        size_t have = c->filled - c->at;
        size_t take = MIN(have, n);
        int r;

        memcpy(p, c->buf + c->at, take);
        c->at += take;
        c->pos += take;
        p += take;
        n -= take;
        if (n == 0)
            break;
        /* The buffer is empty here: large reads go past it. */
        if (n >= sizeof c->buf) {
            r = pread_some(c, p, n, &take, err);
            if (r < 0)
                return r;
            c->pos += take;
            p += take;
            n -= take;
        } else {
            c->at = 0;
            c->filled = 0;
            r = pread_some(c, c->buf, (size_t)MIN(sizeof c->buf, cursor_left(c)), &c->filled, err);
            if (r < 0)
                return r;
        }
    }
    return 0;
}

int cursor_u32(struct cursor *c, uint32_t *ret, struct err *err)
{
    unsigned char b[4];
    int r = cursor_read(c, b, sizeof b, err);

    if (r < 0)
        return r;
    *ret = (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
    return 0;
}

int cursor_u64(struct cursor *c, uint64_t *ret, struct err *err)
{
    uint32_t lo, hi;
    int r = cursor_u32(c, &lo, err);

    if (r < 0)
        return r;
    r = cursor_u32(c, &hi, err);
    if (r < 0)
        return r;
    *ret = (uint64_t)hi << 32 | lo;
    return 0;
}

int cursor_string(struct cursor *c, struct store *s, uint64_t max, const char *what,
                  struct view *ret, struct err *err)
{
    uint64_t len;
    char *p;
    int r = cursor_u64(c, &len, err);

    if (r < 0)
        return r;
    if (len > cursor_left(c))
        return cursor_fail(c, err, ERR_FORMAT,
                           "has %s of %" PRIu64 " bytes at byte %" PRIu64 ", where only %" PRIu64
                           " are left",
                           what, len, c->pos, cursor_left(c));
    if (len > max)
        return cursor_fail(c, err, ERR_FORMAT,
                           "has %s of %" PRIu64 " bytes; the format allows %" PRIu64, what, len,
                           max);
    p = store_alloc(s, (size_t)len, 1);
    r = cursor_read(c, p, (size_t)len, err);
    if (r < 0)
        return r;
    *ret = (struct view){p, (size_t)len};
    return 0;
}
