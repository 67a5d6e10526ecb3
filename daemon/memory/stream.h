/*
 * stream - ranges of a model file to their homes, one after another, at the
 * rate of the drive.
 *
 * A thin order on top of the reader: blocks of 1 MiB, many of them in flight,
 * are copied out as they land, first to last.  Reads cannot go home straight: a
 * direct one needs an address that lies in its page as its bytes do in the file,
 * and homes lie as kernels want them.  Ranges that follow each other share
 * blocks, so small tensors cost no read of their own.
 *
 * Thread: the reader's.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "daemon/memory/reader.h"

#define STREAM_BLOCK ((size_t)1 << 20)
/*
 * In flight, or landed while an earlier one is copied.  Into pages that were there, in turns in
 * one process beside other work: 2.3 GB/s with 8, 2.2 with 16, which outgrow the processor's
 * cache, and 2.0 with one read after another.
 */
#define STREAM_BLOCKS_LEAST 2u
#define STREAM_BLOCKS_MAX   8u

struct stream_range {
    unsigned part;
    uint64_t offset, bytes;
    void *dst;
    const char *name; /* of the tensor, for the sentence */
};

/* So many bytes more are where they belong.  Less than 0, with the sentence, ends the stream. */
typedef int stream_landed_fn(void *arg, size_t bytes, struct err *err);

/*
 * Bytes of blocks that read so many well: an eighth, at least two blocks and at
 * most eight.  What the caller reserves as staging, and stream_read allocates.
 */
size_t stream_staging_bytes(uint64_t bytes);

/*
 * Reads n ranges, which are in the order of their places in the file, by a reader
 * that has nothing to do; when it returns, that is so again.  staging_bytes: of
 * stream_staging_bytes.  ERR_IO names the
 * tensor: a read failed, or the file ends early; ERR_NOMEM when the kernel has
 * no pages; what landed (or NULL) returned.
 */
int stream_read(struct reader *reader, size_t staging_bytes, const struct stream_range *ranges,
                size_t n, stream_landed_fn *landed, void *arg, struct err *err);
