/*
 * reader_priv - what reader.c and its two engines share.
 *
 * reader.c decides what to read next and what a result means; an engine carries
 * out operations: one pread each, at most READER_WINDOW_MAX at once.
 *
 * Thread: the reader's.
 */
#pragma once

#include "daemon/memory/reader.h"

/* One operation in flight.  The engine fills got. */
struct reader_op {
    struct read *rd;
    unsigned part;
    bool direct;
    char *buf;
    uint64_t offset;
    size_t n;
    ssize_t got;  /* as io_uring says it: bytes, or −errno */
    int fd;       /* to read from */
    int fd_index; /* 2 × part + direct: its place among registered files */
    int buffer;   /* registered buffer that holds buf; −1: none */
    bool busy;
};

struct reader_engine_ops {
    const char *name;
    /* Starts an operation; flush makes all that were started visible to the kernel. */
    void (*start)(void *self, struct reader_op *op);
    void (*flush)(void *self);
    /* Finished operations, at most cap; blocks for one when wait. */
    unsigned (*finish)(void *self, bool wait, struct reader_op **ret, unsigned cap);
    bool (*register_buffer)(void *self, int index, void *base, size_t bytes);
    void (*unregister_buffer)(void *self, int index);
    void (*destroy)(void *self);
};

#define READER_BUFFERS 64 /* registered ranges */

/* fds: 2 per part (buffered, direct), −1 where there is none. */
int reader_uring_create(const int *fds, unsigned n_fds, void **ret_self,
                        const struct reader_engine_ops **ret_ops, struct err *err);
/* faults (or NULL) is called in one thread, so that its nth call is the nth operation. */
int reader_pool_create(const struct reader_faults *faults, void **ret_self,
                       const struct reader_engine_ops **ret_ops, struct err *err);
