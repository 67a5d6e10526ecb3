/*
 * Block reads by pread, direct or buffered, one block ahead.  See stream.h.
 *
 * All reads are made by one IO thread, one at a time, into two blocks: while
 * the caller copies out of one (and so touches new pages of its destination),
 * the next is read into the other.
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/alloc.h"
#include "common/thread.h"
#include "daemon/memory/stream.h"

#define N_BLOCKS 2

struct part {
    int fd;        /* the caller's: buffered */
    int direct_fd; /* our own, −1: not tried or not allowed */
    bool tried;
    uint64_t bytes; /* of the file when the stream was made; it may shrink */
};

enum block_state { BLOCK_EMPTY, BLOCK_WANTED, BLOCK_READ };

struct block {
    enum block_state state;
    unsigned part;
    uint64_t from;
    size_t want;
    size_t have; /* less than want: the file ends there, or errnum says why */
    int errnum;
    char *data; /* STREAM_BLOCK bytes, page-aligned */
};

struct stream {
    struct stream_engine engine;
    struct part *parts;
    unsigned n_parts;
    char *memory; /* of all blocks */
    struct block blocks[N_BLOCKS];
    int current; /* the block that is copied from */
    pthread_t thread;
    bool started;
    pthread_mutex_t lock; /* states of blocks, stop; what a wanted block holds is the thread's */
    pthread_cond_t changed;
    bool stop;
    size_t n_read; /* the thread's; read by others when no block is wanted */
};

static ssize_t system_pread(void *arg, int fd, void *buf, size_t n, off_t offset)
{
    (void)arg;
    return pread(fd, buf, n, offset);
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
 * Fills a block.  A direct read that falls short would have to go on at an odd
 * offset, so the rest is read buffered.
 */
static void fill(struct stream *s, struct block *b)
{
    struct part *p = &s->parts[b->part];
    bool buffered = false;
    ssize_t got = 0;

    b->have = 0;
    b->errnum = 0;
    try_direct(s, p);
    if (p->direct_fd >= 0) {
        size_t whole = (b->want + STREAM_ALIGN - 1) / STREAM_ALIGN * STREAM_ALIGN;

        got = read_once(s, p->direct_fd, b->data, whole, b->from);
        if (got < 0 && errno == EINVAL) {
            drop_direct(p); /* the file system says no only now */
            got = 0;
        }
        b->have = got > 0 ? MIN((size_t)got, b->want) : 0;
    }
    while (got >= 0 && b->have < b->want) {
        buffered = true;
        got = read_once(s, p->fd, b->data + b->have, b->want - b->have, b->from + b->have);
        if (got == 0)
            break;
        b->have += got > 0 ? (size_t)got : 0;
    }
    if (got < 0)
        b->errnum = errno;
    if (buffered)
        posix_fadvise(p->fd, (off_t)b->from, (off_t)b->want, POSIX_FADV_DONTNEED);
}

static struct block *wanted_block(struct stream *s)
{
    for (int i = 0; i < N_BLOCKS; i++)
        if (s->blocks[i].state == BLOCK_WANTED)
            return &s->blocks[i];
    return NULL;
}

static void *read_blocks(void *arg)
{
    struct stream *s = arg;
    struct block *b;

    thread_take_role(THREAD_IO, "rnbd-io");
    pthread_mutex_lock(&s->lock);
    while (!s->stop) {
        b = wanted_block(s);
        if (!b) {
            pthread_cond_wait(&s->changed, &s->lock);
            continue;
        }
        pthread_mutex_unlock(&s->lock);
        fill(s, b);
        pthread_mutex_lock(&s->lock);
        b->state = BLOCK_READ;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

size_t stream_staging_bytes(void)
{
    return alloc_page_round(N_BLOCKS * STREAM_BLOCK);
}

int stream_create(const int *fds, unsigned n_parts, const struct stream_engine *engine,
                  struct stream **ret, struct err *err)
{
    struct stream *s = XNEW(struct stream);
    int r;

    if (engine)
        s->engine = *engine;
    if (!s->engine.pread)
        s->engine.pread = system_pread;
    s->parts = XNEW_ARRAY(struct part, n_parts);
    s->n_parts = n_parts;
    for (unsigned i = 0; i < n_parts; i++) {
        struct stat st;

        s->parts[i] = (struct part){.fd = fds[i], .direct_fd = -1, .bytes = UINT64_MAX};
        if (fstat(fds[i], &st) == 0)
            s->parts[i].bytes = (uint64_t)st.st_size;
    }
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    s->memory = alloc_pages(N_BLOCKS * STREAM_BLOCK, 1); /* huge: fewer pieces for the drive */
    if (!s->memory) {
        stream_destroy(s);
        return err_set(err, ERR_NOMEM, "the kernel has no %zu bytes for read buffers",
                       N_BLOCKS * STREAM_BLOCK);
    }
    for (int i = 0; i < N_BLOCKS; i++)
        s->blocks[i].data = s->memory + (size_t)i * STREAM_BLOCK;
    r = thread_start(&s->thread, read_blocks, s);
    if (r != 0) {
        stream_destroy(s);
        return err_set_errno(err, ERR_NOMEM, r, "starting a thread that reads failed");
    }
    s->started = true;
    *ret = s;
    return 0;
}

void stream_destroy(struct stream *s)
{
    if (!s)
        return;
    if (s->started) {
        pthread_mutex_lock(&s->lock);
        s->stop = true;
        pthread_cond_broadcast(&s->changed);
        pthread_mutex_unlock(&s->lock);
        pthread_join(s->thread, NULL);
    }
    for (unsigned i = 0; i < s->n_parts; i++)
        if (s->parts[i].direct_fd >= 0)
            close(s->parts[i].direct_fd);
    if (s->memory)
        free_pages(s->memory, N_BLOCKS * STREAM_BLOCK);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s->parts);
    free(s);
}

/* Waits until nothing is being read. */
static void settle(struct stream *s)
{
    pthread_mutex_lock(&s->lock);
    while (wanted_block(s))
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

size_t stream_bytes_read(struct stream *s)
{
    settle(s);
    return s->n_read;
}

static void want(struct stream *s, int i, unsigned part, uint64_t from, size_t bytes)
{
    struct block *b = &s->blocks[i];

    pthread_mutex_lock(&s->lock);
    b->part = part;
    b->from = from;
    b->want = bytes;
    b->state = BLOCK_WANTED;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static bool begins_at(const struct block *b, unsigned part, uint64_t from)
{
    return b->state != BLOCK_EMPTY && b->part == part && b->from == from;
}

/*
 * Makes the block of this offset the current one, and has the one behind it
 * read, as far as limit.  end: what is wanted for certain.
 */
static struct block *turn_to(struct stream *s, unsigned part, uint64_t offset, uint64_t end,
                             uint64_t limit)
{
    int other = 1 - s->current;
    uint64_t from = offset / STREAM_ALIGN * STREAM_ALIGN;
    struct block *b;

    settle(s);
    /* Blocks end on a boundary: the next one may be read directly too. */
    limit = (MAX(limit, end) + STREAM_ALIGN - 1) / STREAM_ALIGN * STREAM_ALIGN;
    limit = MAX(MIN(limit, s->parts[part].bytes), from + 1);
    if (!begins_at(&s->blocks[other], part, from)) {
        want(s, other, part, from, (size_t)MIN((uint64_t)STREAM_BLOCK, limit - from));
        settle(s);
    }
    s->current = other;
    b = &s->blocks[other];
    from += b->want;
    if (b->have == b->want && from < limit)
        want(s, 1 - other, part, from, (size_t)MIN((uint64_t)STREAM_BLOCK, limit - from));
    return b;
}

static int failed(const struct block *b, const char *name, struct err *err)
{
    if (!b->errnum)
        return err_set_param(err, ERR_IO, name,
                             "the file ends at byte %llu, before the end of tensor '%s': it was "
                             "cut after it was opened",
                             (unsigned long long)(b->from + b->have), name);
    err_set_errno(err, ERR_IO, b->errnum, "reading tensor '%s' failed", name);
    if (err)
        snprintf(err->param, sizeof err->param, "%s", name);
    return -ERR_IO;
}

/* Bytes of the block from offset on; 0 when it does not hold that place. */
static size_t held(const struct block *b, unsigned part, uint64_t offset)
{
    if (b->state != BLOCK_READ || b->part != part || offset < b->from ||
        offset >= b->from + b->have)
        return 0;
    return (size_t)(b->from + b->have - offset);
}

int stream_read(struct stream *s, unsigned part, uint64_t offset, size_t bytes, uint64_t limit,
                void *dst, const char *name, struct err *err)
{
    char *out = dst;

    while (bytes) {
        struct block *b = &s->blocks[s->current];
        size_t n = held(b, part, offset);

        if (!n) {
            b = turn_to(s, part, offset, offset + bytes, limit);
            n = held(b, part, offset);
            if (!n)
                return failed(b, name, err);
        }
        n = MIN(n, bytes);
        memcpy(out, b->data + (offset - b->from), n);
        out += n;
        offset += n;
        bytes -= n;
    }
    return 0;
}
