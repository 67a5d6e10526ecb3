/* Pairwise joining with a heap; see merge.h. */
#include <stdlib.h>

#include "daemon/tokenizer/merge.h"
#include "daemon/tokenizer/tokenizer_priv.h"

int merge_start(struct merge *m, size_t n)
{
    m->n = 0;
    m->n_heap = 0;
    return WORK_GROW(m->work, m->symbols, n, m->cap);
}

void merge_clear(struct merge *m)
{
    work_free(m->work, m->symbols, m->cap, sizeof *m->symbols);
    work_free(m->work, m->heap, m->cap_heap, sizeof *m->heap);
    *m = (struct merge){.work = m->work};
}

void merge_add(struct merge *m, uint32_t at, uint32_t len, int32_t id)
{
    int32_t i = (int32_t)m->n;

    if (i > 0)
        m->symbols[i - 1].next = i;
    m->symbols[m->n++] = (struct symbol){.at = at, .len = len, .prev = i - 1, .next = -1, .id = id};
}

static void heap_push(struct merge *m, struct merge_pair p)
{
    size_t i = m->n_heap;

    m->n_heap++;
    while (i > 0 && m->heap[(i - 1) / 2].key > p.key) {
        m->heap[i] = m->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    m->heap[i] = p;
}

static struct merge_pair heap_pop(struct merge *m)
{
    struct merge_pair top = m->heap[0], last = m->heap[--m->n_heap];
    size_t i = 0, child;

    while ((child = 2 * i + 1) < m->n_heap) {
        if (child + 1 < m->n_heap && m->heap[child + 1].key < m->heap[child].key)
            child++;
        if (last.key <= m->heap[child].key)
            break;
        m->heap[i] = m->heap[child];
        i = child;
    }
    m->heap[i] = last;
    return top;
}

static void consider(struct merge *m, int32_t left, int32_t right, merge_fn *pair, const void *arg)
{
    struct merge_pair p;
    uint32_t order;

    if (left < 0 || right < 0 || !pair(arg, &m->symbols[left], &m->symbols[right], &order, &p.id))
        return;
    p.key = (uint64_t)order << 32 | (uint32_t)left;
    p.right = (uint32_t)right;
    p.len = m->symbols[left].len + m->symbols[right].len;
    heap_push(m, p);
}

/* Joining two symbols takes a pair away and brings two at most, so the heap may outgrow the symbols. */
int merge_run(struct merge *m, merge_fn *pair, const void *arg)
{
    if (WORK_GROW(m->work, m->heap, m->n, m->cap_heap) < 0)
        return m->work->failed;
    for (size_t i = 1; i < m->n && work_step(m->work) == 0; i++)
        consider(m, (int32_t)i - 1, (int32_t)i, pair, arg);
    while (m->n_heap && work_step(m->work) == 0) {
        struct merge_pair p = heap_pop(m);
        int32_t left = (int32_t)(uint32_t)p.key;
        struct symbol *l = &m->symbols[left], *r = &m->symbols[p.right];

        /* Either has been joined to another one since: lengths only grow, or go to 0. */
        if (l->len == 0 || r->len == 0 || l->len + r->len != p.len)
            continue;
        if (WORK_GROW(m->work, m->heap, m->n_heap + 2, m->cap_heap) < 0)
            break;
        l->len = p.len;
        l->id = p.id;
        r->len = 0;
        l->next = r->next;
        if (r->next >= 0)
            m->symbols[r->next].prev = left;
        consider(m, l->prev, left, pair, arg);
        consider(m, left, l->next, pair, arg);
    }
    return m->work->failed;
}
