/* Chunks of growing size, freed together.  See arena.h. */
#include "daemon/template/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/utf8.h"

#define CHUNK_FIRST ((size_t)16 << 10)
#define CHUNK_MOST  ((size_t)1 << 20)
#define ALIGN       ((size_t)16)

struct arena_chunk {
    struct arena_chunk *next;
    size_t bytes;
    _Alignas(16) char data[];
};

void arena_init(struct arena *a, size_t limit_bytes, struct err *err)
{
    memset(a, 0, sizeof *a);
    a->limit_bytes = limit_bytes;
    a->err = err;
}

void arena_clear(struct arena *a)
{
    while (a->chunks) {
        struct arena_chunk *c = a->chunks;

        a->chunks = c->next;
        free(c);
    }
    a->next = a->end = NULL;
    a->used_bytes = 0;
}

size_t arena_held_bytes(const struct arena *a)
{
    size_t sum = 0;

    for (const struct arena_chunk *c = a->chunks; c; c = c->next)
        sum += sizeof *c + c->bytes;
    return sum;
}

static void add_chunk(struct arena *a, size_t need)
{
    size_t bytes = a->chunks ? MIN(a->chunks->bytes * 2, CHUNK_MOST) : CHUNK_FIRST;
    struct arena_chunk *c;

    bytes = MAX(bytes, need);
    c = xmalloc(sizeof *c + bytes);
    c->bytes = bytes;
    c->next = a->chunks;
    a->chunks = c;
    a->next = c->data;
    a->end = c->data + bytes;
}

char *arena_bytes(struct arena *a, size_t bytes)
{
    size_t rounded;
    char *p;

    if (bytes > a->limit_bytes - a->used_bytes || bytes > SIZE_MAX / 2)
        arena_fail(a, ERR_TOO_LARGE, "the chat template needs more than %zu MiB of memory",
                   a->limit_bytes >> 20);
    rounded = MAX((bytes + ALIGN - 1) & ~(ALIGN - 1), ALIGN);
    if (rounded > (size_t)(a->end - a->next))
        add_chunk(a, rounded);
    p = a->next;
    a->next += rounded;
    a->used_bytes += MIN(rounded, a->limit_bytes - a->used_bytes);
    return p;
}

void *arena_alloc(struct arena *a, size_t bytes)
{
    return memset(arena_bytes(a, bytes), 0, bytes);
}

void *arena_array(struct arena *a, size_t n, size_t bytes)
{
    if (bytes && n > SIZE_MAX / 2 / bytes)
        arena_fail(a, ERR_TOO_LARGE, "the chat template makes a list that is too long");
    return arena_alloc(a, n * bytes);
}

void *arena_grow(struct arena *a, const void *p, size_t old_n, size_t new_n, size_t bytes)
{
    void *grown = arena_array(a, new_n, bytes);

    if (old_n)
        memcpy(grown, p, old_n * bytes);
    return grown;
}

/* A cut in the middle of a character, here or by who gave the text, is no UTF-8. */
static void make_valid(char *text)
{
    for (size_t at = 0, n; text[at]; at += n ? n : 1) {
        unsigned cp;

        n = utf8_decode(text + at, strlen(text + at), &cp);
        if (!n)
            text[at] = '?';
    }
}

void arena_fail(struct arena *a, enum err_kind kind, const char *fmt, ...)
{
    char text[sizeof a->err->text];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    make_valid(text);
    a->kind = err_set(a->err, kind, "%s", text);
    longjmp(a->out, 1);
}
