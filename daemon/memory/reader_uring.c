/*
 * Operations by io_uring, in the thread that wants the bytes.  See reader_priv.h.
 *
 * With DEFER_TASKRUN and SINGLE_ISSUER (6.1) completions are run only inside the
 * waiting call; older kernels take a plain ring.
 */

#include <assert.h>
#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "common/alloc.h"
#include "daemon/memory/reader_priv.h"

struct uring {
    struct io_uring ring;
    bool deferred;      /* completions need a call to appear */
    bool fixed_files;   /* by index */
    bool fixed_buffers; /* the table is there */
};

static void uring_start(void *self, struct reader_op *op)
{
    struct uring *u = self;
    struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);
    int fd = u->fixed_files ? op->fd_index : op->fd;

    if (!sqe) { /* as many places as operations: only if a flush came too late */
        io_uring_submit(&u->ring);
        sqe = io_uring_get_sqe(&u->ring);
    }
    if (op->buffer >= 0)
        io_uring_prep_read_fixed(sqe, fd, op->buf, (unsigned)op->n, op->offset, op->buffer);
    else
        io_uring_prep_read(sqe, fd, op->buf, (unsigned)op->n, op->offset);
    if (u->fixed_files)
        sqe->flags |= IOSQE_FIXED_FILE;
    io_uring_sqe_set_data(sqe, op);
}

static void uring_flush(void *self)
{
    struct uring *u = self;

    io_uring_submit(&u->ring); /* what is refused now (EAGAIN, EBUSY) goes with the next call */
}

static unsigned take(struct uring *u, struct reader_op **ret, unsigned cap)
{
    struct io_uring_cqe *cqe;
    unsigned n = 0;

    while (n < cap && io_uring_peek_cqe(&u->ring, &cqe) == 0) {
        struct reader_op *op = io_uring_cqe_get_data(cqe);

        op->got = cqe->res;
        io_uring_cqe_seen(&u->ring, cqe);
        ret[n++] = op;
    }
    return n;
}

static unsigned uring_finish(void *self, bool wait, struct reader_op **ret, unsigned cap)
{
    struct uring *u = self;
    unsigned n = take(u, ret, cap);

    if (n)
        return n;
    if (!wait) {
        if (u->deferred)
            io_uring_submit_and_get_events(&u->ring);
        else
            io_uring_submit(&u->ring);
        return take(u, ret, cap);
    }
    while (n == 0) {
        int r = io_uring_submit_and_wait(&u->ring, 1);

        assert(r >= 0 || r == -EINTR || r == -EAGAIN ||
               r == -EBUSY); /* else: another thread's ring */
        n = take(u, ret, cap);
    }
    return n;
}

static bool uring_register(void *self, int index, void *base, size_t bytes)
{
    struct uring *u = self;
    struct iovec v = {.iov_base = base, .iov_len = bytes};
    __u64 tag = 0;

    if (!u->fixed_buffers)
        u->fixed_buffers = io_uring_register_buffers_sparse(&u->ring, READER_BUFFERS) == 0;
    if (!u->fixed_buffers)
        return false;
    return io_uring_register_buffers_update_tag(&u->ring, (unsigned)index, &v, &tag, 1) == 1;
}

static void uring_unregister(void *self, int index)
{
    struct uring *u = self;
    struct iovec none = {0};
    __u64 tag = 0;

    io_uring_register_buffers_update_tag(&u->ring, (unsigned)index, &none, &tag, 1);
}

static void uring_destroy(void *self)
{
    struct uring *u = self;

    io_uring_queue_exit(&u->ring);
    free(u);
}

static const struct reader_engine_ops uring_ops = {
    .name = "io_uring",
    .start = uring_start,
    .flush = uring_flush,
    .finish = uring_finish,
    .register_buffer = uring_register,
    .unregister_buffer = uring_unregister,
    .destroy = uring_destroy,
};

int reader_uring_create(const int *fds, unsigned n_fds, void **ret_self,
                        const struct reader_engine_ops **ret_ops, struct err *err)
{
    struct uring *u = XNEW(struct uring);
    struct io_uring_params p = {.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN};
    int r = io_uring_queue_init_params(READER_WINDOW_MAX, &u->ring, &p);

    u->deferred = r >= 0;
    if (r == -EINVAL) {
        p = (struct io_uring_params){0};
        r = io_uring_queue_init_params(READER_WINDOW_MAX, &u->ring, &p);
    }
    if (r < 0) {
        free(u);
        return err_set_errno(err, ERR_UNSUPPORTED, -r, "the kernel refuses io_uring");
    }
    u->fixed_files = io_uring_register_files(&u->ring, fds, n_fds) == 0;
    *ret_self = u;
    *ret_ops = &uring_ops;
    return 0;
}
