/*
 * reader - many reads of slices of a model file at once, into buffers of the
 * caller's.
 *
 * For weights as they load and as they stream: io_uring with direct I/O, driven by the thread that
 * wants the bytes (no thread that reaps), or, where the kernel or a sandbox
 * refuses io_uring, a pool of threads with pread.  Reads start in the order of
 * submission, but demanded rows (32 KiB or less) before all others; a window of
 * bytes is in flight on each drive, so that they land one after another rather
 * than all at the end, where the drive tells of each; the window is refilled inside
 * reader_submit and reader_wait, and nowhere else: who computes for long
 * between two waits calls reader_wait(…, 0, …) in between.
 *
 * A direct read covers whole blocks of READER_ALIGN bytes: a buffer has room
 * for reader_slot_bytes() and the wanted bytes lie at reader_data() in it,
 * whatever the engine.  Such a read may run past the end of the file.
 *
 * A read that fails, gives nothing, or ends before the wanted bytes do is
 * -ERR_IO; read_check() writes the sentence, which names the tensor.  Nothing
 * else is affected.
 *
 * Thread: all calls belong to one, in the daemon ENGINE (an io_uring belongs to
 * the thread that made it).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"

#define READER_ALIGN        ((size_t)4096)
#define READER_WINDOW       6u  /* segments in flight, of a drive that nobody has measured */
#define READER_WINDOW_MAX   64u /* operations in flight, all drives together */
#define READER_SEGMENT      ((size_t)2 << 20) /* a longer read is made of operations of this size */
#define READER_POOL_THREADS 4u

struct reader;

/* As pread(2): bytes read, 0 at the end of the file, −1 and errno. */
typedef ssize_t reader_pread_fn(void *arg, int fd, void *buf, size_t n, off_t offset);

/* What tests put below the pool, which has one thread then. */
struct reader_faults {
    reader_pread_fn *pread; /* NULL: the system's */
    void *arg;
    bool no_direct; /* buffered only */
};

enum reader_engine {
    READER_AUTO,  /* io_uring, or the pool when that is refused */
    READER_URING, /* or an error */
    READER_POOL
};

/* What calibration knows about the drive below one part; zero: the defaults above. */
struct reader_drive {
    unsigned window; /* segments in flight; or as many bytes of smaller reads */
    size_t segment_bytes;
    bool buffered;
};

struct reader_options {
    enum reader_engine engine;
    const struct reader_drive *drives;  /* one per part, or NULL */
    const struct reader_faults *faults; /* reads by the pool, as this says; tests */
    bool keep_cache;                    /* leave in the page cache what was read buffered */
};

enum read_class {
    READ_DEMANDED, /* someone waits for it */
    READ_AHEAD     /* a guess: starts only while its drive has nothing demanded to do */
};

/* One read; the caller's, and untouched by it from reader_submit until reader_wait gives it back. */
struct read {
    /* wanted */
    enum read_class class;
    unsigned part;
    uint64_t offset;
    size_t bytes;
    void *buffer; /* aligned to READER_ALIGN, reader_slot_bytes(offset, bytes) long at least */
    size_t capacity;
    const char *name; /* of the tensor, for the sentence; valid until given back */
    void *user;
    /* done */
    int result;         /* 0, -ERR_IO, -ERR_CANCELLED */
    int errnum;         /* why; 0 with -ERR_IO: the file ends too early */
    uint64_t failed_at; /* with -ERR_IO: the first byte of the file that did not come */
    size_t read_bytes;  /* from the drive, over-read included */
    int64_t done_us;    /* clock_us() when it landed */
    /* the reader's own */
    struct read *next;
    size_t at; /* begun up to here, from the first block on */
    unsigned in_flight;
    bool queued;
};

/* fds: one per part, borrowed.  In ENGINE.  Logs once when io_uring was refused and the pool serves. */
int reader_create(const int *fds, unsigned n_parts, const struct reader_options *options,
                  struct reader **ret, struct err *err);
void reader_destroy(struct reader *r); /* cancels and waits */

/* Bytes that a buffer for this range needs. */
size_t reader_slot_bytes(uint64_t offset, size_t bytes);
/* The same for a range of this size at any offset. */
size_t reader_slot_bytes_any(size_t bytes);
/* Where in the buffer the first wanted byte lies. */
static inline size_t reader_skip(uint64_t offset)
{
    return (size_t)(offset % READER_ALIGN);
}
static inline const void *reader_data(const struct read *rd)
{
    return (const char *)rd->buffer + reader_skip(rd->offset);
}

/*
 * Buffers that will be read into often: registered with the kernel where it lets
 * us (memlock), which saves CPU and pins their pages: they cannot be given back
 * to the kernel before reader_unregister.  A range is at most 1 GiB; one that is
 * refused is not an error.  Not while reads into it are in flight.
 */
bool reader_register(struct reader *r, void *base, size_t bytes);
void reader_unregister(struct reader *r, void *base);

/*
 * Bytes that one computation between two calls gives the drive time for: reads
 * begin in bursts of so many from now on, or of the window's where that is more,
 * lest the drive run dry before the next call; the next burst when three quarters
 * of the one before have landed.  What begins together lands together, so this is
 * for reads of which all are wanted, in the order of submission.  0: the window
 * alone, refilled as operations land.
 */
void reader_set_ahead(struct reader *r, size_t bytes);

/* Queues n reads and starts what the window allows, demanded rows at once.  Cannot fail: a read does. */
void reader_submit(struct reader *r, struct read *const *reads, unsigned n);

/*
 * Starts what the window allows, waits until min reads have landed (or none is
 * left) and gives back at most cap of them.  min 0 never blocks.  Returns how
 * many; 0 with min > 0: the reader is idle.
 */
unsigned reader_wait(struct reader *r, unsigned min, struct read **ret_done, unsigned cap);

/* 0, or the kind and the sentence of a read that was given back. */
int read_check(const struct read *rd, struct err *err);

/*
 * Drops what has not begun and waits for what has.  Then the reader holds no
 * read: results are set, -ERR_CANCELLED for what was dropped.
 */
void reader_cancel(struct reader *r);
/* Drops only what was read ahead and has not begun; those come back by reader_wait as cancelled. */
void reader_cancel_ahead(struct reader *r);

unsigned reader_pending(const struct reader *r); /* submitted, not given back */

struct reader_stats {
    const char *engine;  /* "io_uring", "pread" */
    const char *refused; /* why not io_uring; "" */
    bool direct;         /* of the first part */
    size_t window_bytes; /* of the first part's drive */
    size_t registered_bytes;
    uint64_t reads, failed_reads;
    uint64_t wanted_bytes, read_bytes; /* read − wanted: over-read */
    uint64_t ahead_bytes;              /* of read_bytes: by READ_AHEAD */
    int64_t wait_us;                   /* reader_wait blocked */
    int64_t busy_us;                   /* something was in flight */
};
void reader_stats(const struct reader *r, struct reader_stats *ret);
