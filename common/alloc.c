/* Allocation that cannot fail, growable arrays, whole pages; see alloc.h. */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/alloc.h"

#define HUGE_PAGE ((size_t)2 << 20)

static void die(size_t size)
{
    fprintf(stderr, "rnbd: the heap refused %zu bytes\n", size);
    abort();
}

void *xmalloc(size_t size)
{
    void *p = malloc(size ? size : 1);

    if (!p)
        die(size);
    return p;
}

void *xcalloc(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size ? size : 1);

    if (!p)
        die(n * size);
    return p;
}

void *xrealloc(void *p, size_t size)
{
    p = realloc(p, size ? size : 1);
    if (!p)
        die(size);
    return p;
}

void *xreallocarray(void *p, size_t n, size_t size)
{
    size_t bytes;

    if (__builtin_mul_overflow(n, size, &bytes))
        die(SIZE_MAX);
    return xrealloc(p, bytes);
}

char *xstrdup(const char *s)
{
    return s ? xmemdup(s, strlen(s) + 1) : NULL;
}

char *xstrndup(const char *s, size_t n)
{
    size_t len = strnlen(s, n);
    char *p = xmalloc(len + 1);

    memcpy(p, s, len);
    p[len] = '\0';
    return p;
}

void *xmemdup(const void *p, size_t n)
{
    void *copy = xmalloc(n);

    if (n)
        memcpy(copy, p, n);
    return copy;
}

char *xasprintf(const char *fmt, ...)
{
    va_list ap;
    char *s = NULL;

    va_start(ap, fmt);
    if (vasprintf(&s, fmt, ap) < 0)
        die(0);
    va_end(ap);
    return s;
}

void *array_grow(void *p, size_t need, size_t *cap, size_t elem_bytes)
{
    size_t n = *cap ? *cap : 8;

    /* Past this the growth below would wrap round and never end. */
    if (need > SIZE_MAX / 2)
        die(need);
    while (n < need)
        n += n / 2 + 1;
    *cap = n;
    return xreallocarray(p, n, elem_bytes);
}

size_t alloc_page_round(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return (bytes + page - 1) / page * page;
}

void *alloc_pages(size_t bytes, int huge)
{
    size_t size = alloc_page_round(bytes);
    size_t slack = huge && size >= HUGE_PAGE ? HUGE_PAGE : 0;
    char *p;

    if (size < bytes || size + slack < size)
        return NULL;
    p = mmap(NULL, size + slack, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    if (slack) {
        size_t lead = (HUGE_PAGE - (uintptr_t)p % HUGE_PAGE) % HUGE_PAGE;

        if (lead)
            munmap(p, lead);
        if (slack - lead)
            munmap(p + lead + size, slack - lead);
        p += lead;
        madvise(p, size, MADV_HUGEPAGE);
    }
    return p;
}

void free_pages(void *p, size_t bytes)
{
    if (p)
        munmap(p, alloc_page_round(bytes));
}

void discard_pages(void *p, size_t bytes)
{
    madvise(p, bytes, MADV_DONTNEED);
}

int populate_pages(void *p, size_t bytes)
{
    return madvise(p, bytes, MADV_POPULATE_WRITE);
}
