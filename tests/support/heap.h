/*
 * heap - what the heap has given out, held against what was asked for before.
 *
 *     struct heap_book b = {.before = heap_used()};
 *     const struct gguf_room room = {heap_ask, &b};
 *     …
 *     heap_look(&b);
 *     ck_assert_uint_le(b.over, HEAP_ALLOW);
 *
 * The heap is looked at whenever something is asked for, so what lives only for a
 * while counts too.  Under sanitizers there is nothing to see: heap_counts() is
 * then false and has said so, and a test that depends on it ends there.
 */
#pragma once

#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/err.h"

/* What does not grow with a file (a buffer to read into), ends of pages, what malloc keeps for itself. */
#define HEAP_ALLOW ((size_t)256 << 10)

struct heap_book {
    size_t before; /* of the heap, when nothing had been asked for */
    size_t asked;
    size_t over; /* the most by which the heap was ahead of what had been asked for */
};

static inline size_t heap_used(void)
{
    struct mallinfo2 i = mallinfo2();

    return i.uordblks + i.hblkhd;
}

/* Whether the heap says what it has given out. */
static inline bool heap_counts(void)
{
    const size_t bytes = (size_t)8 << 20;
    size_t before;
    char *volatile p;
    bool counts;

    /* Large blocks are pages of their own, as they are before a heap has seen many of them. */
    mallopt(M_MMAP_THRESHOLD, 128 << 10);
    before = heap_used();
    p = malloc(bytes);
    counts = p && heap_used() >= before + bytes;
    free(p);
    if (!counts)
        printf("note: skipped: this heap does not say what it has given out\n");
    return counts;
}

static inline void heap_look(struct heap_book *b)
{
    size_t used = heap_used(), had = b->before + b->asked;

    if (used > had && used - had > b->over)
        b->over = used - had;
}

/* reserve of a gguf_room */
static inline int heap_ask(void *arg, size_t bytes, struct err *err)
{
    struct heap_book *b = arg;

    (void)err;
    heap_look(b);
    b->asked += bytes;
    return 0;
}
