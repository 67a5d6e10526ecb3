/*
 * stream - ordered reads of byte ranges of a model file into owned memory.
 *
 * Direct I/O where the file system allows it (blocks of 1 MiB through aligned
 * buffers: no page cache is left behind, little CPU); otherwise buffered, and
 * each block's cache is given up after it was read.  Ranges that follow each
 * other share blocks, so small tensors cost no read of their own, and the block
 * behind the one in use is read ahead by a thread of the stream's own.
 *
 * A file that ends early, a failed read and a read that gives nothing are
 * ERR_IO naming the range: a truncated file is an error of that load.
 *
 * The engine below does the reading; tests put a faulty one in its place.
 *
 * Thread: the calls belong to one; the engine's pread runs in the IO thread, one
 * at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"

/* As pread(2): bytes read, 0 at the end of the file, −1 and errno. */
typedef ssize_t stream_pread_fn(void *arg, int fd, void *buf, size_t n, off_t offset);

struct stream_engine {
    stream_pread_fn *pread; /* NULL: the system's */
    void *arg;
    bool no_direct; /* buffered only */
};

#define STREAM_BLOCK ((size_t)1 << 20)
#define STREAM_ALIGN ((size_t)4096)

struct stream;

/* Bytes that stream_create allocates: what the caller reserves as staging. */
size_t stream_staging_bytes(void);

/* fds: one per part, borrowed.  engine may be NULL (the system's).  ERR_NOMEM when the kernel has no pages. */
int stream_create(const int *fds, unsigned n_parts, const struct stream_engine *engine,
                  struct stream **ret, struct err *err);
void stream_destroy(struct stream *s);

/*
 * Reads bytes of a part at offset to dst.  limit: the first byte of the part
 * past which nothing will be wanted soon (no block reads on beyond it).
 * name is for the sentence.
 */
int stream_read(struct stream *s, unsigned part, uint64_t offset, size_t bytes, uint64_t limit,
                void *dst, const char *name, struct err *err);

size_t stream_bytes_read(struct stream *s); /* over-read included; waits for the read in flight */
