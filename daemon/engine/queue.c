/* A list; who is next is schedule.c's to say.  See queue.h. */
#include <stdlib.h>

#include "common/alloc.h"
#include "daemon/engine/queue.h"
#include "daemon/engine/schedule.h"

void queue_init(struct queue *q)
{
    *q = (struct queue){.last = &q->first};
}

void queue_add(struct queue *q, struct work *w)
{
    w->next = NULL;
    *q->last = w;
    q->last = &w->next;
    q->n++;
    queue_publish(q);
}

void queue_remove(struct queue *q, struct work *w)
{
    for (struct work **p = &q->first; *p; p = &(*p)->next) {
        if (*p != w)
            continue;
        *p = w->next;
        if (q->last == &w->next)
            q->last = p;
        w->next = NULL;
        q->n--;
        break;
    }
    queue_publish(q);
}

struct work *queue_find(const struct queue *q, uint64_t id)
{
    struct work *w = q->first;

    while (w && w->id != id)
        w = w->next;
    return w;
}

bool queue_wants(const struct queue *q, const struct slot *s)
{
    for (const struct work *w = q->first; w; w = w->next)
        if (w->slot == s)
            return true;
    return false;
}

struct work *queue_next(struct queue *q, bool (*ready)(const struct slot *s))
{
    struct schedule_item *items;
    struct work *w;
    size_t n = 0, chosen;

    if (!q->first)
        return NULL;
    items = XNEW_ARRAY(struct schedule_item, q->n);
    for (w = q->first; w; w = w->next)
        items[n++] = (struct schedule_item){.ready = ready(w->slot), .passed = w->passed};
    chosen = schedule_next(items, n);
    free(items);
    w = q->first;
    for (size_t i = 0; i < chosen; i++, w = w->next)
        w->passed++;
    queue_remove(q, w);
    return w;
}

struct work *queue_overdue(const struct queue *q, int64_t wait_ms, int64_t now_ms)
{
    if (wait_ms <= 0)
        return NULL;
    for (struct work *w = q->first; w; w = w->next)
        if (w->kind == WORK_REQUEST && now_ms - w->arrived_ms >= wait_ms)
            return w;
    return NULL;
}

int64_t queue_deadline(const struct queue *q, int64_t wait_ms)
{
    if (wait_ms > 0)
        for (const struct work *w = q->first; w; w = w->next)
            if (w->kind == WORK_REQUEST)
                return w->arrived_ms + wait_ms;
    return INT64_MAX;
}

void queue_publish(const struct queue *q)
{
    unsigned place = 1;

    for (struct work *w = q->first; w; w = w->next)
        if (w->kind == WORK_REQUEST)
            atomic_store_explicit(&task_of(w)->stat_order, place++, memory_order_relaxed);
}
