/*
 * What is read next, in which order, and what a result means.  See reader.h;
 * the operations are carried out by reader_uring.c or reader_pool.c.
 */

#include "daemon/memory/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/alloc.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/thread.h"
#include "daemon/memory/reader_priv.h"

/* A read that costs the drive next to nothing: a row, that a whole token waits for. */
#define SMALL      ((size_t)32 << 10)
#define COST_LEAST SMALL /* of an operation, in bytes of a window */

struct list {
    struct read *first, *last;
};

/* Parts on one drive share a window. */
struct lane {
    dev_t dev;
    size_t calibrated;     /* bytes in flight that keep the drive busy while someone waits */
    size_t window;         /* … and while someone computes, as reader_set_ahead wants it */
    size_t refill;         /* more begin when no more than this are in flight */
    size_t in_flight;      /* cost of operations */
    unsigned pending[2];   /* reads by class, queued or in flight */
    struct list queued[2]; /* by class; reads with something left to begin */
    struct list small;     /* demanded ones that wait for no window */
};

struct part {
    int fd;        /* buffered: a description of our own where /proc allows it */
    int direct_fd; /* −1: none */
    bool own_fd;
    bool no_direct; /* it said no when it was asked to read */
    unsigned lane;
    size_t segment;
};

struct reader {
    struct reader_options options;
    const struct reader_engine_ops *ops;
    void *engine;
    struct part *parts;
    unsigned n_parts;
    struct lane *lanes;
    unsigned n_lanes;
    struct reader_op op[READER_WINDOW_MAX];
    unsigned n_ops; /* in flight */
    struct list done;
    unsigned n_done;
    unsigned n_pending;
    int64_t busy_since;
    struct {
        char *base;
        size_t bytes;
    } buffers[READER_BUFFERS];
    char refused[128];
    struct reader_stats stats;
};

size_t reader_slot_bytes(uint64_t offset, size_t bytes)
{
    return (reader_skip(offset) + bytes + READER_ALIGN - 1) / READER_ALIGN * READER_ALIGN;
}

size_t reader_slot_bytes_any(size_t bytes)
{
    return reader_slot_bytes(READER_ALIGN - 1, bytes);
}

static void push(struct list *l, struct read *rd)
{
    rd->next = NULL;
    if (l->last)
        l->last->next = rd;
    else
        l->first = rd;
    l->last = rd;
}

static struct read *shift(struct list *l)
{
    struct read *rd = l->first;

    if (rd) {
        l->first = rd->next;
        if (!l->first)
            l->last = NULL;
        rd->next = NULL;
    }
    return rd;
}

/* ---- making one ---- */

/* A description of the same file with its own read-ahead and flags, whatever its path leads to now. */
static int reopen(int fd, int flags)
{
    char link[64];

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    return open(link, O_RDONLY | O_CLOEXEC | flags);
}

/*
 * What is read while someone computes goes in bursts, of so many bytes at least.
 * Some drives, virtio's among them, tell of a burst only when all of it has
 * landed.  What joined one in flight would hold it up; in the end all of a ring
 * would land at once, and the drive idle until the first of it had computed.
 */
static void set_window(struct lane *l, size_t burst)
{
    l->window = MAX(l->calibrated, burst + burst / 3);
    l->refill = burst ? l->window / 4 : l->window;
}

static void add_part(struct reader *r, unsigned i, int fd, const struct reader_drive *drive)
{
    struct part *p = &r->parts[i];
    struct stat st = {0};
    bool no_direct = drive->buffered || (r->options.faults && r->options.faults->no_direct);

    *p = (struct part){.fd = reopen(fd, 0), .direct_fd = -1};
    p->own_fd = p->fd >= 0;
    if (p->own_fd) /* whole slices are asked for: the kernel's guesses would only read more */
        posix_fadvise(p->fd, 0, 0, POSIX_FADV_RANDOM);
    else
        p->fd = fd;
    if (!no_direct)
        p->direct_fd = reopen(fd, O_DIRECT);
    p->segment = drive->segment_bytes ? drive->segment_bytes : READER_SEGMENT;
    p->segment = MAX(p->segment / READER_ALIGN * READER_ALIGN, READER_ALIGN);
    if (fstat(fd, &st) < 0)
        st.st_dev = 0;
    for (p->lane = 0; p->lane < r->n_lanes; p->lane++)
        if (r->lanes[p->lane].dev == st.st_dev)
            return;
    r->lanes[r->n_lanes] = (struct lane){
        .dev = st.st_dev,
        .calibrated =
            MIN(drive->window ? drive->window : READER_WINDOW, READER_WINDOW_MAX) * p->segment};
    set_window(&r->lanes[r->n_lanes], 0);
    r->n_lanes++;
}

static int open_engine(struct reader *r, struct err *err)
{
    static _Atomic bool told;
    int *fds;
    struct err why = {0};
    int rc = -ERR_UNSUPPORTED;

    if (r->options.engine != READER_POOL && !r->options.faults) {
        fds = xreallocarray(NULL, MAX(r->n_parts, 1), 2 * sizeof *fds);
        for (size_t i = 0; i < r->n_parts; i++) {
            fds[2 * i] = r->parts[i].fd;
            fds[2 * i + 1] = r->parts[i].direct_fd;
        }
        rc = reader_uring_create(fds, 2 * r->n_parts, &r->engine, &r->ops, &why);
        free(fds);
        if (rc >= 0)
            return 0;
        if (r->options.engine == READER_URING) {
            if (err)
                *err = why;
            return rc;
        }
        snprintf(r->refused, sizeof r->refused, "%.127s", why.text);
    }
    rc = reader_pool_create(r->options.faults, &r->engine, &r->ops, err);
    if (rc >= 0 && r->refused[0] && !atomic_exchange(&told, true))
        log_warning("reading by a few threads instead of io_uring", "reason=\"%s\"", r->refused);
    return rc;
}

int reader_create(const int *fds, unsigned n_parts, const struct reader_options *options,
                  struct reader **ret, struct err *err)
{
    static const struct reader_drive defaults;
    struct reader *r = XNEW(struct reader);
    int rc;

    thread_assert(THREAD_ENGINE);
    if (options)
        r->options = *options;
    r->parts = XNEW_ARRAY(struct part, n_parts);
    r->lanes = XNEW_ARRAY(struct lane, n_parts);
    r->n_parts = n_parts;
    for (unsigned i = 0; i < n_parts; i++)
        add_part(r, i, fds[i], r->options.drives ? &r->options.drives[i] : &defaults);
    r->options.drives = NULL; /* the caller's */
    rc = open_engine(r, err);
    if (rc < 0) {
        reader_destroy(r);
        return rc;
    }
    *ret = r;
    return 0;
}

void reader_destroy(struct reader *r)
{
    if (!r)
        return;
    if (r->engine) {
        reader_cancel(r);
        for (int i = 0; i < READER_BUFFERS; i++)
            if (r->buffers[i].base)
                r->ops->unregister_buffer(r->engine, i);
        r->ops->destroy(r->engine);
    }
    for (unsigned i = 0; i < r->n_parts; i++) {
        if (r->parts[i].direct_fd >= 0)
            close(r->parts[i].direct_fd);
        if (r->parts[i].own_fd)
            close(r->parts[i].fd);
    }
    free(r->parts);
    free(r->lanes);
    free(r);
}

bool reader_register(struct reader *r, void *base, size_t bytes)
{
    if (bytes > (size_t)1 << 30)
        return false;
    for (int i = 0; i < READER_BUFFERS; i++) {
        if (r->buffers[i].base)
            continue;
        if (!r->ops->register_buffer(r->engine, i, base, bytes))
            return false;
        r->buffers[i].base = base;
        r->buffers[i].bytes = bytes;
        r->stats.registered_bytes += bytes;
        return true;
    }
    return false;
}

void reader_unregister(struct reader *r, void *base)
{
    for (int i = 0; i < READER_BUFFERS; i++)
        if (r->buffers[i].base == base) {
            r->ops->unregister_buffer(r->engine, i);
            r->stats.registered_bytes -= r->buffers[i].bytes;
            r->buffers[i].base = NULL;
        }
}

void reader_set_ahead(struct reader *r, size_t bytes)
{
    for (unsigned i = 0; i < r->n_parts; i++)
        set_window(&r->lanes[r->parts[i].lane],
                   MIN(bytes, READER_WINDOW_MAX / 2 * r->parts[i].segment));
}

static int registered(const struct reader *r, const char *buf, size_t n)
{
    for (int i = 0; i < READER_BUFFERS && r->stats.registered_bytes; i++)
        if (r->buffers[i].base && buf >= r->buffers[i].base &&
            buf + n <= r->buffers[i].base + r->buffers[i].bytes)
            return i;
    return -1;
}

/* ---- starting ---- */

static size_t cost(size_t n)
{
    return MAX(n, COST_LEAST);
}

/* Bytes from the first block's start to the last wanted byte: what has to be read, at least. */
static size_t needed(const struct read *rd)
{
    return reader_skip(rd->offset) + rd->bytes;
}

static uint64_t first_block(const struct read *rd)
{
    return rd->offset - reader_skip(rd->offset);
}

/* Reads [from, from + n) of rd, counted from its first block. */
static void start_op(struct reader *r, struct read *rd, size_t from, size_t n, bool direct)
{
    struct part *p = &r->parts[rd->part];
    struct reader_op *op = r->op;

    while (op->busy)
        op++;
    *op = (struct reader_op){
        .rd = rd,
        .part = rd->part,
        .direct = direct,
        .buf = (char *)rd->buffer + from,
        .offset = first_block(rd) + from,
        .n = n,
        .fd = direct ? p->direct_fd : p->fd,
        .fd_index = (int)(2 * rd->part + direct),
        .busy = true,
    };
    op->buffer = registered(r, op->buf, n);
    if (!r->n_ops++)
        r->busy_since = clock_us();
    rd->in_flight++;
    r->lanes[p->lane].in_flight += cost(n);
    r->ops->start(r->engine, op);
}

static bool reads_direct(const struct part *p)
{
    return p->direct_fd >= 0 && !p->no_direct;
}

/* The next operation of a read.  True when nothing of it is left to begin. */
static bool begin(struct reader *r, struct read *rd)
{
    struct part *p = &r->parts[rd->part];
    bool direct = reads_direct(p);
    size_t end = rd->at + MIN(needed(rd) - rd->at, p->segment);
    size_t from = rd->at;

    if (direct)
        end = (end + READER_ALIGN - 1) / READER_ALIGN * READER_ALIGN;
    else /* need not begin at a block, but its buffer is laid out as if it did */
        from = MAX(from, reader_skip(rd->offset));
    start_op(r, rd, from, end - from, direct);
    rd->at = end;
    return rd->at >= needed(rd);
}

static bool is_small(const struct read *rd)
{
    return rd->class == READ_DEMANDED && needed(rd) <= SMALL;
}

static struct list *queue_of(struct lane *l, const struct read *rd)
{
    return is_small(rd) ? &l->small : &l->queued[rd->class];
}

static void fill_lane(struct reader *r, struct lane *l)
{
    bool more = l->in_flight <= l->refill;

    while (r->n_ops < READER_WINDOW_MAX) {
        struct list *q = &l->small;

        if (!q->first) {
            if (!more || l->in_flight >= l->window)
                return;
            q = &l->queued[READ_DEMANDED];
        }
        if (!q->first) {
            q = &l->queued[READ_AHEAD];
            if (!q->first || l->pending[READ_DEMANDED])
                return;
        }
        if (begin(r, q->first))
            shift(q);
    }
}

static void fill(struct reader *r)
{
    for (unsigned i = 0; i < r->n_lanes; i++)
        fill_lane(r, &r->lanes[i]);
    if (r->n_ops)
        r->ops->flush(r->engine);
}

static void finish_read(struct reader *r, struct read *rd, int result);

static bool makes_sense(const struct reader *r, const struct read *rd)
{
    return rd->part < r->n_parts && rd->offset <= UINT64_MAX / 4 && rd->bytes <= SIZE_MAX / 4 &&
           rd->capacity >= reader_slot_bytes(rd->offset, rd->bytes);
}

void reader_submit(struct reader *r, struct read *const *reads, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct read *rd = reads[i];
        struct lane *l;

        rd->result = rd->errnum = 0;
        rd->read_bytes = rd->at = 0;
        rd->failed_at = UINT64_MAX;
        rd->in_flight = 0;
        rd->queued = false;
        r->n_pending++;
        r->stats.reads++;
        if (!makes_sense(r, rd)) {
            rd->errnum = EINVAL; /* our own fault, not the drive's */
            finish_read(r, rd, -ERR_IO);
            continue;
        }
        if (!rd->bytes) {
            finish_read(r, rd, 0);
            continue;
        }
        r->stats.wanted_bytes += rd->bytes;
        l = &r->lanes[r->parts[rd->part].lane];
        l->pending[rd->class]++;
        rd->queued = true;
        push(queue_of(l, rd), rd);
    }
    fill(r);
}

/* ---- results ---- */

static void finish_read(struct reader *r, struct read *rd, int result)
{
    rd->result = result;
    rd->done_us = clock_us();
    if (result == -ERR_IO)
        r->stats.failed_reads++;
    if (rd->queued)
        r->lanes[r->parts[rd->part].lane].pending[rd->class]--;
    push(&r->done, rd);
    r->n_done++;
}

/* Takes a read out of its queue: it failed with more left to begin. */
static void unqueue(struct reader *r, struct read *rd)
{
    struct list *q = queue_of(&r->lanes[r->parts[rd->part].lane], rd);
    struct list kept = {0};
    struct read *other;

    if (rd->at >= needed(rd))
        return;
    while ((other = shift(q)))
        if (other != rd)
            push(&kept, other);
    *q = kept;
    rd->at = needed(rd);
}

/*
 * Goes on where an operation fell short of end (both counted from the first
 * block).  What is left of a direct one would begin at an odd offset: buffered.
 * False: it cannot.
 */
static bool go_on(struct reader *r, const struct reader_op *op, size_t from, size_t end)
{
    struct part *p = &r->parts[op->part];

    if (op->got > 0) {
        from += (size_t)op->got;
        start_op(r, op->rd, from, end - from, false);
    } else if (op->got == -EINTR || op->got == -EAGAIN) {
        start_op(r, op->rd, from, op->n, op->direct);
    } else if (op->got == -EINVAL && op->direct) {
        p->no_direct = true; /* the file system says so only now; others may be in flight */
        start_op(r, op->rd, from, end - from, false);
    } else {
        return false;
    }
    return true;
}

static void count(struct reader *r, const struct reader_op *op)
{
    struct part *p = &r->parts[op->part];

    r->lanes[p->lane].in_flight -= cost(op->n);
    op->rd->in_flight--;
    if (!--r->n_ops)
        r->stats.busy_us += clock_us() - r->busy_since;
    if (op->got <= 0)
        return;
    op->rd->read_bytes += (size_t)op->got;
    r->stats.read_bytes += (uint64_t)op->got;
    if (op->rd->class == READ_AHEAD)
        r->stats.ahead_bytes += (uint64_t)op->got;
    if (!op->direct && !r->options.keep_cache)
        posix_fadvise(p->fd, (off_t)(op->offset / READER_ALIGN * READER_ALIGN),
                      (off_t)(op->n + READER_ALIGN), POSIX_FADV_DONTNEED);
}

/* An operation ended the read it belongs to, or fell short too after another had done so. */
static void fail(struct reader *r, struct read *rd, const struct reader_op *op)
{
    rd->failed_at = MIN(rd->failed_at, op->offset + (uint64_t)MAX(op->got, 0));
    if (rd->result < 0)
        return;
    rd->result = -ERR_IO;
    rd->errnum = op->got < 0 ? (int)-op->got : 0;
    unqueue(r, rd);
}

static void landed(struct reader *r, struct reader_op *op)
{
    const struct reader_op done = *op; /* its place may be taken at once */
    struct read *rd = done.rd;
    size_t from = (size_t)(done.offset - first_block(rd));
    size_t end = MIN(from + done.n, needed(rd));

    op->busy = false;
    count(r, &done);
    if ((done.got < 0 || from + (size_t)done.got < end) &&
        (rd->result < 0 || !go_on(r, &done, from, end)))
        fail(r, rd, &done);
    if (!rd->in_flight && rd->at >= needed(rd))
        finish_read(r, rd, rd->result);
}

/* Takes what has finished; blocks for one operation when wait. */
static void reap(struct reader *r, bool wait)
{
    struct reader_op *ops[READER_WINDOW_MAX];
    unsigned n = r->ops->finish(r->engine, wait, ops, READER_WINDOW_MAX);

    for (unsigned i = 0; i < n; i++)
        landed(r, ops[i]);
    if (n)
        fill(r);
}

unsigned reader_wait(struct reader *r, unsigned min, struct read **ret_done, unsigned cap)
{
    unsigned n = 0;

    fill(r);
    if (r->n_ops)
        reap(r, false);
    if (r->n_done < min && r->n_ops) {
        int64_t t0 = clock_us();

        while (r->n_done < min && r->n_ops)
            reap(r, true);
        r->stats.wait_us += clock_us() - t0;
    }
    while (n < cap && r->n_done) {
        ret_done[n++] = shift(&r->done);
        r->n_done--;
        r->n_pending--;
    }
    return n;
}

int read_check(const struct read *rd, struct err *err)
{
    if (rd->result == 0)
        return 0;
    if (rd->result == -ERR_CANCELLED)
        return err_set(err, ERR_CANCELLED, "reading tensor '%s' was cancelled", rd->name);
    if (rd->errnum == 0)
        return err_set_param(err, ERR_IO, rd->name,
                             "the file ends at byte %llu, before the end of tensor '%s': it was "
                             "cut after it was opened",
                             (unsigned long long)rd->failed_at, rd->name);
    err_set_errno(err, ERR_IO, rd->errnum, "reading tensor '%s' failed", rd->name);
    if (err)
        snprintf(err->param, sizeof err->param, "%s", rd->name);
    return -ERR_IO;
}

/* ---- cancelling ---- */

/* Drops what is queued; a read that has begun ends when its operations do. */
static void drop_queued(struct reader *r, struct list *q)
{
    struct read *rd;

    while ((rd = shift(q))) {
        rd->at = needed(rd);
        rd->result = -ERR_CANCELLED;
        if (!rd->in_flight)
            finish_read(r, rd, -ERR_CANCELLED);
    }
}

void reader_cancel_ahead(struct reader *r)
{
    for (unsigned i = 0; i < r->n_lanes; i++)
        drop_queued(r, &r->lanes[i].queued[READ_AHEAD]);
}

void reader_cancel(struct reader *r)
{
    for (unsigned i = 0; i < r->n_lanes; i++) {
        drop_queued(r, &r->lanes[i].small);
        drop_queued(r, &r->lanes[i].queued[READ_DEMANDED]);
        drop_queued(r, &r->lanes[i].queued[READ_AHEAD]);
    }
    while (r->n_ops)
        reap(r, true);
    while (shift(&r->done))
        continue;
    r->n_done = 0;
    r->n_pending = 0;
}

unsigned reader_pending(const struct reader *r)
{
    return r->n_pending;
}

void reader_stats(const struct reader *r, struct reader_stats *ret)
{
    *ret = r->stats;
    ret->engine = r->ops->name;
    ret->refused = r->refused;
    ret->direct = r->n_parts && reads_direct(&r->parts[0]);
    ret->window_bytes = r->n_parts ? r->lanes[r->parts[0].lane].window : 0;
    if (r->n_ops)
        ret->busy_us += clock_us() - r->busy_since;
}
