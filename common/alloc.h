/*
 * alloc - allocation that cannot fail, for small things, and growable arrays.
 *
 * The x-functions end the process with one sentence when the heap is gone:
 * they are for objects whose size does not grow with a model, a context or a
 * request body.  What does grow asks the ledger first and can be refused
 * (daemon/memory/ledger.h); its bytes come from alloc_pages().
 *
 * Any thread.
 */
#pragma once

#include <stddef.h>

void *xmalloc(size_t size);
void *xcalloc(size_t n, size_t size); /* zeroed; n * size is checked */
void *xrealloc(void *p, size_t size);
void *xreallocarray(void *p, size_t n, size_t size);
char *xstrdup(const char *s);            /* NULL gives NULL */
char *xstrndup(const char *s, size_t n); /* always terminated */
void *xmemdup(const void *p, size_t n);
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#define XNEW(type)          ((type *)xcalloc(1, sizeof(type)))
#define XNEW_ARRAY(type, n) ((type *)xcalloc((n), sizeof(type)))

/*
 * Growable array of any type:
 *
 *     struct item *items; size_t n_items, cap_items;
 *     ARRAY_GROW(items, n_items + 1, cap_items);
 *     items[n_items++] = it;
 */
#define ARRAY_GROW(p, need, cap)                                                                   \
    do {                                                                                           \
        if ((size_t)(need) > (size_t)(cap))                                                        \
            (p) = array_grow((p), (need), &(cap), sizeof *(p));                                    \
    } while (0)

void *array_grow(void *p, size_t need, size_t *cap, size_t elem_bytes);

/*
 * Zeroed pages straight from the kernel, given back whole to it.  May fail:
 * returns NULL.  bytes is rounded up to a page (alloc_page_round); with huge,
 * transparent huge pages are asked for and the start is aligned to 2 MiB.
 * The true size for the ledger is alloc_page_round(bytes).
 */
void *alloc_pages(size_t bytes, int huge);
void free_pages(void *p, size_t bytes);
/* Whole pages within such a range go back to the kernel; they read as zeros from then on. */
void discard_pages(void *p, size_t bytes);
/*
 * Pages of such a range get memory now, those that have some keep what they hold; p begins a page.
 * −1: the kernel cannot, or has none; what is missing comes when it is touched.
 */
int populate_pages(void *p, size_t bytes);
size_t alloc_page_round(size_t bytes);

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)    ((a) < (b) ? (a) : (b))
#define MAX(a, b)    ((a) > (b) ? (a) : (b))
