/*
 * arena - the memory of one parse or one render, and the one way out of it.
 *
 * Everything is freed together, so nothing inside the room frees anything,
 * and a failure deep in an expression can leave by longjmp with nothing to
 * unwind: arena_fail() fills the struct err and jumps to the ARENA_TRY of the
 * two public entry points.  No jump ever leaves the room.
 */
#pragma once

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

struct arena_chunk;

struct arena {
    struct arena_chunk *chunks;
    char *next;
    char *end;
    size_t used_bytes;
    size_t limit_bytes;
    struct err *err; /* may be NULL */
    int kind;        /* negative kind after arena_fail */
    jmp_buf out;
};

void arena_init(struct arena *a, size_t limit_bytes, struct err *err);
void arena_clear(struct arena *a);
size_t arena_held_bytes(const struct arena *a); /* from the heap */

/* Zeroed, aligned to 16; never NULL.  Past the limit: ERR_TOO_LARGE by arena_fail. */
void *arena_alloc(struct arena *a, size_t bytes);
void *arena_array(struct arena *a, size_t n, size_t bytes); /* n * bytes is checked */
/* As arena_alloc, but not zeroed: for text. */
char *arena_bytes(struct arena *a, size_t bytes);
/* A larger copy of an array of old_n elements; the old one stays valid until the end. */
void *arena_grow(struct arena *a, const void *p, size_t old_n, size_t new_n, size_t bytes);

#define ARENA_NEW(a, type) ((type *)arena_alloc((a), sizeof(type)))

_Noreturn void arena_fail(struct arena *a, enum err_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* 0 at first; not 0 when arena_fail came back here. */
#define ARENA_TRY(a) setjmp((a)->out)
