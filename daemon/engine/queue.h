/*
 * queue - the works that wait, in the order they came.
 *
 * Thread: ENGINE.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/engine/work.h"

struct queue {
    struct work *first;
    struct work **last;
    size_t n;
};

void queue_init(struct queue *q);
void queue_add(struct queue *q, struct work *w);
void queue_remove(struct queue *q, struct work *w);
struct work *queue_find(const struct queue *q, uint64_t id);
bool queue_wants(const struct queue *q,
                 const struct slot *s); /* does anything wait for this model? */
/* Takes the next out, by schedule.h; NULL when nothing waits. */
struct work *queue_next(struct queue *q, bool (*ready)(const struct slot *s));
/* The first request that has waited for wait_ms at now_ms, still in the queue; NULL when none. */
struct work *queue_overdue(const struct queue *q, int64_t wait_ms, int64_t now_ms);
/* When the next request will be overdue; INT64_MAX when none. */
int64_t queue_deadline(const struct queue *q, int64_t wait_ms);
/* Writes each request's place (1 …) where LOOP can read it. */
void queue_publish(const struct queue *q);
