/* The cursor and the store; see gguf_priv.h. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/alloc.h"
#include "common/utf8.h"
#include "daemon/gguf/gguf_priv.h"

struct gguf_store_block {
    struct gguf_store_block *next;
    size_t used, cap;
    _Alignas(16) unsigned char bytes[];
};

#define PAGE_MOST ((uint64_t)64 << 10)

/* A block is whole pages with what malloc adds: a large one gets them, whatever is asked. */
#define BLOCK_HEAD        (GGUF_HEAP_HEADER + sizeof(struct gguf_store_block))
#define STORE_BLOCK_BYTES (65536u - BLOCK_HEAD)

int gguf_store_ask(const struct gguf_store *s, size_t bytes, struct err *err)
{
    return s->room.reserve ? s->room.reserve(s->room.arg, bytes, err) : 0;
}

void *gguf_store_alloc(struct gguf_store *s, size_t bytes, size_t align, struct err *err)
{
    struct gguf_store_block *b = s->blocks;
    size_t at = b ? (b->used + align - 1) / align * align : 0;

    if (!b || at > b->cap || bytes > b->cap - at) {
        size_t whole = alloc_page_round(BLOCK_HEAD + MAX(bytes, STORE_BLOCK_BYTES));

        /* A large thing gets a block of its own behind the first, which stays open for small ones. */
        if (gguf_store_ask(s, whole, err) < 0)
            return NULL;
        b = xmalloc(whole - GGUF_HEAP_HEADER);
        b->cap = whole - BLOCK_HEAD;
        b->used = 0;
        at = 0;
        if (s->blocks && bytes >= STORE_BLOCK_BYTES) {
            b->next = s->blocks->next;
            s->blocks->next = b;
        } else {
            b->next = s->blocks;
            s->blocks = b;
        }
        s->bytes += whole;
    }
    b->used = at + bytes;
    return b->bytes + at;
}

void gguf_store_clear(struct gguf_store *s)
{
    struct gguf_store_block *b = s->blocks;

    while (b) {
        struct gguf_store_block *next = b->next;

        free(b);
        b = next;
    }
    *s = (struct gguf_store){0};
}

void gguf_cursor_init(struct gguf_cursor *c, const char *path, int fd, uint64_t file_bytes)
{
    c->path = path;
    c->fd = fd;
    c->pos = 0;
    c->capped = file_bytes > GGUF_META_MAX_BYTES;
    c->end = c->capped ? GGUF_META_MAX_BYTES : file_bytes;
    c->own = UINT64_MAX;
    /* What the kernel reads ahead may still be on its way when it is to be dropped, and then stays. */
    posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
    c->at = 0;
    c->filled = 0;
}

void gguf_cursor_forget(const struct gguf_cursor *c)
{
    uint64_t to = c->pos - c->at + c->filled;

    posix_fadvise(c->fd, 0, 0, POSIX_FADV_NORMAL);
    if (c->own < to) /* up to a page's end: one that is dropped in part stays */
        posix_fadvise(c->fd, (off_t)c->own, (off_t)(to - c->own + PAGE_MOST), POSIX_FADV_DONTNEED);
}

uint64_t gguf_cursor_left(const struct gguf_cursor *c)
{
    return c->end - c->pos;
}

int gguf_cursor_fail(const struct gguf_cursor *c, struct err *err, enum err_kind kind,
                     const char *fmt, ...)
{
    char text[400];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return err_set(err, kind, "'%.100s' %s", c->path, text);
}

/* Reads up to n bytes at the place where the buffer ends; 0 is the end of a file that has shrunk. */
static int pread_some(struct gguf_cursor *c, void *out, size_t n, size_t *ret_got, struct err *err)
{
    ssize_t got = 0;

    /* What is in the page cache before the first byte that is not was put there by others. */
    if (c->own == UINT64_MAX) {
        got = preadv2(c->fd, &(struct iovec){out, n}, 1, (off_t)c->pos, RWF_NOWAIT);
        if (got <= 0)
            c->own = c->pos;
    }
    if (got <= 0)
        do
            got = pread(c->fd, out, n, (off_t)c->pos);
        while (got < 0 && errno == EINTR);
    if (got < 0)
        return err_set_errno(err, ERR_IO, errno, "cannot read '%.200s'", c->path);
    if (got == 0)
        return gguf_cursor_fail(c, err, ERR_FORMAT, "became shorter while it was read");
    *ret_got = (size_t)got;
    return 0;
}

static int past_limit(const struct gguf_cursor *c, struct err *err)
{
    return gguf_cursor_fail(c, err, ERR_UNSUPPORTED,
                            "has more than %" PRIu64 " MiB of metadata, which rnbd refuses",
                            GGUF_META_MAX_BYTES >> 20);
}

int gguf_cursor_read(struct gguf_cursor *c, void *out, size_t n, struct err *err)
{
    unsigned char *p = out;

    if (n > gguf_cursor_left(c)) {
        if (c->capped)
            return past_limit(c, err);
        return gguf_cursor_fail(c, err, ERR_FORMAT,
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
            r = pread_some(c, c->buf, (size_t)MIN(sizeof c->buf, gguf_cursor_left(c)), &c->filled,
                           err);
            if (r < 0)
                return r;
        }
    }
    return 0;
}

int gguf_cursor_u32(struct gguf_cursor *c, uint32_t *ret, struct err *err)
{
    unsigned char b[4];
    int r = gguf_cursor_read(c, b, sizeof b, err);

    if (r < 0)
        return r;
    *ret = (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
    return 0;
}

int gguf_cursor_u64(struct gguf_cursor *c, uint64_t *ret, struct err *err)
{
    uint32_t lo, hi;
    int r = gguf_cursor_u32(c, &lo, err);

    if (r < 0)
        return r;
    r = gguf_cursor_u32(c, &hi, err);
    if (r < 0)
        return r;
    *ret = (uint64_t)hi << 32 | lo;
    return 0;
}

int gguf_cursor_string(struct gguf_cursor *c, struct gguf_store *s, uint64_t max, const char *what,
                       struct view *ret, struct err *err)
{
    uint64_t len;
    char *p;
    int r = gguf_cursor_u64(c, &len, err);

    if (r < 0)
        return r;
    if (len > gguf_cursor_left(c) && c->capped)
        return past_limit(c, err);
    if (len > gguf_cursor_left(c))
        return gguf_cursor_fail(c, err, ERR_FORMAT,
                                "has %s of %" PRIu64 " bytes at byte %" PRIu64
                                ", where only %" PRIu64 " are left",
                                what, len, c->pos, gguf_cursor_left(c));
    if (len > max)
        return gguf_cursor_fail(c, err, ERR_FORMAT,
                                "has %s of %" PRIu64 " bytes; the format allows %" PRIu64, what,
                                len, max);
    p = gguf_store_alloc(s, (size_t)len, 1, err);
    if (!p)
        return -ERR_NOMEM;
    r = gguf_cursor_read(c, p, (size_t)len, err);
    if (r < 0)
        return r;
    *ret = (struct view){p, (size_t)len};
    return 0;
}

int gguf_shown_len(struct view v)
{
    size_t n = MIN(v.len, (size_t)100);

    return (int)(n - (n ? utf8_incomplete_tail(v.p, n) : 0));
}

bool gguf_is_name(struct view v)
{
    for (size_t i = 0; i < v.len; i++)
        if ((unsigned char)v.p[i] < ' ' || v.p[i] == 0x7f)
            return false;
    return utf8_valid(v.p, v.len);
}
