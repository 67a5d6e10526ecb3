/* A locked list and an eventfd that is readable exactly while the list holds something; see mailbox.h. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/alloc.h"
#include "common/clock.h"
#include "common/mailbox.h"

struct mailbox {
    pthread_mutex_t lock;
    struct letter *first;
    struct letter **last; /* where the next letter is hung in */
    atomic_bool has;
    int fd;
};

struct mailbox *mailbox_create(void)
{
    struct mailbox *m = XNEW(struct mailbox);

    pthread_mutex_init(&m->lock, NULL);
    m->last = &m->first;
    m->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (m->fd < 0) {
        /* Only at start, out of descriptors: nothing can run without its mailboxes. */
        perror("rnbd: cannot make an eventfd");
        abort();
    }
    return m;
}

void mailbox_destroy(struct mailbox *m)
{
    if (!m)
        return;
    close(m->fd);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

void mailbox_post(struct mailbox *m, struct letter *take_letter)
{
    uint64_t one = 1;

    take_letter->next = NULL;
    pthread_mutex_lock(&m->lock);
    /*
     * Under the lock, so that the descriptor cannot be cleared by a take that
     * has not seen this letter; it never blocks, for it holds 0 here.
     */
    if (!m->first && write(m->fd, &one, sizeof one) < 0)
        abort();
    *m->last = take_letter;
    m->last = &take_letter->next;
    atomic_store_explicit(&m->has, true, memory_order_release);
    pthread_mutex_unlock(&m->lock);
}

struct letter *mailbox_take(struct mailbox *m)
{
    struct letter *letter;
    uint64_t count;

    pthread_mutex_lock(&m->lock);
    letter = m->first;
    if (letter) {
        m->first = letter->next;
        letter->next = NULL;
        if (!m->first) {
            m->last = &m->first;
            atomic_store_explicit(&m->has, false, memory_order_release);
            if (read(m->fd, &count, sizeof count) < 0)
                abort();
        }
    }
    pthread_mutex_unlock(&m->lock);
    return letter;
}

bool mailbox_wait(struct mailbox *m, int timeout_ms)
{
    struct pollfd p = {.fd = m->fd, .events = POLLIN};
    int64_t until = clock_ms() + timeout_ms;

    for (;;) {
        int64_t left = timeout_ms < 0 ? -1 : MAX(until - clock_ms(), 0);
        int n = poll(&p, 1, (int)left);

        if (n > 0)
            return true;
        if (n == 0 || errno != EINTR)
            return false;
    }
}

bool mailbox_has(const struct mailbox *m)
{
    return atomic_load_explicit(&m->has, memory_order_acquire);
}

int mailbox_fd(const struct mailbox *m)
{
    return m->fd;
}
