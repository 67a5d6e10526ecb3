/*
 * Operations by pread in a few threads: where io_uring is refused, and for
 * faults on request.  See reader_priv.h.
 */

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/alloc.h"
#include "common/thread.h"
#include "daemon/memory/reader_priv.h"

/* A ring of pointers; never full, because there are no more operations than places. */
struct ring {
    struct reader_op *ops[READER_WINDOW_MAX];
    unsigned first, n;
};

struct pool {
    reader_pread_fn *pread;
    void *arg;
    pthread_t threads[READER_POOL_THREADS];
    unsigned n_threads;
    pthread_mutex_t lock; /* all below */
    pthread_cond_t work;
    pthread_cond_t done;
    struct ring wanted;
    struct ring finished;
    bool stop;
};

static void ring_put(struct ring *r, struct reader_op *op)
{
    r->ops[(r->first + r->n++) % READER_WINDOW_MAX] = op;
}

static struct reader_op *ring_take(struct ring *r)
{
    struct reader_op *op;

    if (!r->n)
        return NULL;
    op = r->ops[r->first];
    r->first = (r->first + 1) % READER_WINDOW_MAX;
    r->n--;
    return op;
}

static ssize_t system_pread(void *arg, int fd, void *buf, size_t n, off_t offset)
{
    (void)arg;
    return pread(fd, buf, n, offset);
}

static void *work(void *arg)
{
    struct pool *p = arg;

    thread_take_role(THREAD_IO, "rnbd-read");
    pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        struct reader_op *op = ring_take(&p->wanted);
        ssize_t got;

        if (!op) {
            pthread_cond_wait(&p->work, &p->lock);
            continue;
        }
        pthread_mutex_unlock(&p->lock);
        got = p->pread(p->arg, op->fd, op->buf, op->n, (off_t)op->offset);
        op->got = got < 0 ? -errno : got;
        pthread_mutex_lock(&p->lock);
        ring_put(&p->finished, op);
        pthread_cond_signal(&p->done);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static void pool_start(void *self, struct reader_op *op)
{
    struct pool *p = self;

    pthread_mutex_lock(&p->lock);
    ring_put(&p->wanted, op);
    pthread_cond_signal(&p->work);
    pthread_mutex_unlock(&p->lock);
}

static void pool_flush(void *self)
{
    (void)self;
}

static unsigned pool_finish(void *self, bool wait, struct reader_op **ret, unsigned cap)
{
    struct pool *p = self;
    unsigned n = 0;

    pthread_mutex_lock(&p->lock);
    while (wait && !p->finished.n)
        pthread_cond_wait(&p->done, &p->lock);
    while (n < cap && p->finished.n)
        ret[n++] = ring_take(&p->finished);
    pthread_mutex_unlock(&p->lock);
    return n;
}

static bool pool_register(void *self, int index, void *base, size_t bytes)
{
    (void)self, (void)index, (void)base, (void)bytes;
    return false;
}

static void pool_unregister(void *self, int index)
{
    (void)self, (void)index;
}

static void pool_destroy(void *self)
{
    struct pool *p = self;

    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (unsigned i = 0; i < p->n_threads; i++)
        pthread_join(p->threads[i], NULL);
    pthread_cond_destroy(&p->work);
    pthread_cond_destroy(&p->done);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

static const struct reader_engine_ops pool_ops = {
    .name = "pread",
    .start = pool_start,
    .flush = pool_flush,
    .finish = pool_finish,
    .register_buffer = pool_register,
    .unregister_buffer = pool_unregister,
    .destroy = pool_destroy,
};

int reader_pool_create(const struct reader_faults *faults, void **ret_self,
                       const struct reader_engine_ops **ret_ops, struct err *err)
{
    struct pool *p = XNEW(struct pool);

    p->pread = faults && faults->pread ? faults->pread : system_pread;
    p->arg = faults ? faults->arg : NULL;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->done, NULL);
    while (p->n_threads < (faults ? 1 : READER_POOL_THREADS)) {
        int errnum = thread_start(&p->threads[p->n_threads], work, p);

        if (errnum == 0) {
            p->n_threads++;
            continue;
        }
        if (p->n_threads) /* fewer will do */
            break;
        pool_destroy(p);
        return err_set_errno(err, ERR_NOMEM, errnum, "starting a thread that reads failed");
    }
    *ret_self = p;
    *ret_ops = &pool_ops;
    return 0;
}
