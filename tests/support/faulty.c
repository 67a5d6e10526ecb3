/* See faulty.h. */
#include "tests/support/faulty.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "common/alloc.h"

ssize_t faulty_pread(void *arg, int fd, void *buf, size_t n, off_t offset)
{
    struct faulty *f = arg;
    long i = f->n_reads++;
    ssize_t got;

    if (f->eintr_every && i % f->eintr_every == 0) {
        errno = EINTR;
        return -1;
    }
    if (f->einval_direct && fcntl(fd, F_GETFL) & O_DIRECT) {
        errno = EINVAL;
        return -1;
    }
    if (i == f->fail_at) {
        errno = f->errnum;
        return f->errnum ? -1 : 0;
    }
    got = pread(fd, buf, f->most_bytes ? MIN(n, f->most_bytes) : n, offset);
    if (got > 0)
        f->n_bytes += (size_t)got;
    return got;
}
