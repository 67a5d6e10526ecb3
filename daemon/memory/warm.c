/* A thread that touches pages ahead.  See warm.h. */

#include "daemon/memory/warm.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/alloc.h"
#include "common/thread.h"

/* Touched between two looks at what is wanted: two huge pages, about a millisecond. */
#define STEP ((size_t)4 << 20)
#define NONE WARM_REGIONS

struct wanted {
    char *data;
    size_t at, end; /* touched up to at */
};

struct warm {
    pthread_t thread;
    pthread_mutex_t lock; /* all below */
    pthread_cond_t changed;
    struct wanted regions[WARM_REGIONS];
    unsigned busy;  /* the region that is being touched; NONE */
    unsigned waits; /* for that to end: nothing is begun before they have had their turn */
    bool stop;
};

static unsigned next_region(const struct warm *w)
{
    unsigned i = 0;

    while (i < WARM_REGIONS && w->regions[i].at >= w->regions[i].end)
        i++;
    return i;
}

static void *touch_ahead(void *arg)
{
    struct warm *w = arg;

    thread_take_role(THREAD_IO, "rnbd-warm");
    pthread_mutex_lock(&w->lock);
    while (!w->stop) {
        unsigned i = next_region(w);
        struct wanted *p = &w->regions[i];
        size_t n;
        int r;

        if (i == NONE || w->waits) {
            pthread_cond_wait(&w->changed, &w->lock);
            continue;
        }
        n = MIN(STEP, p->end - p->at);
        w->busy = i;
        pthread_mutex_unlock(&w->lock);
        r = populate_pages(p->data + p->at, n); /* neither changes while it is busy */
        pthread_mutex_lock(&w->lock);
        w->busy = NONE;
        p->at += n;
        if (r < 0)
            w->stop = true;
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

struct warm *warm_start(void)
{
    struct warm *w = XNEW(struct warm);

    w->busy = NONE;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    if (thread_start(&w->thread, touch_ahead, w) == 0)
        return w;
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
    return NULL;
}

void warm_stop(struct warm *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

void warm_want(struct warm *w, unsigned i, void *data, size_t bytes)
{
    struct wanted *p;
    size_t end = alloc_page_round(bytes);

    if (!w)
        return;
    p = &w->regions[i];
    pthread_mutex_lock(&w->lock);
    w->waits++;
    while (w->busy == i)
        pthread_cond_wait(&w->changed, &w->lock);
    w->waits--;
    if (p->data != data)
        *p = (struct wanted){.data = data};
    p->end = end;
    p->at = MIN(p->at, end);
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}
