/*
 * text - strings with the origin of every byte, and the buffers they are
 * built in.
 *
 * A buffer grows by doubling in the arena.  A string made from a buffer
 * shares its bytes; a string that ends where its buffer ends is extended in
 * place, so that "s = s ~ x" in a loop costs what it adds.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/template/value.h"

struct buffer {
    char *p;
    size_t len;
    size_t cap;
    unsigned char *marks; /* cap bytes; NULL while all bytes are `origin` */
    unsigned char origin;
};

void buffer_add(struct render *r, struct buffer *b, const char *p, size_t n,
                enum template_origin origin);
void buffer_adds(struct render *r, struct buffer *b, const char *literal); /* trusted */
void buffer_addc(struct render *r, struct buffer *b, char c, enum template_origin origin);
void buffer_fill(struct render *r, struct buffer *b, char c, size_t n); /* trusted */
void buffer_add_text(struct render *r, struct buffer *b, const struct text *t);
void buffer_add_sub(struct render *r, struct buffer *b, const struct text *t, size_t from,
                    size_t n);
const struct text *buffer_text(struct render *r, struct buffer *b);

/* p is borrowed: it must live as long as the render. */
const struct text *text_borrow(struct render *r, const char *p, size_t n,
                               enum template_origin origin);
const struct text *text_concat(struct render *r, const struct text *a, const struct text *b);
const struct text *text_sub(struct render *r, const struct text *t, size_t from, size_t n);
const struct text *text_repeat(struct render *r, const struct text *t, int64_t times);
const struct text *text_replace(struct render *r, const struct text *t, const struct text *old,
                                const struct text *with, int64_t most);

static inline enum template_origin text_origin_at(const struct text *t, size_t i)
{
    return (enum template_origin)(t->marks ? t->marks[i] : t->origin);
}

/* MESSAGE as soon as one byte is. */
enum template_origin text_origin(const struct text *t);
/* A zero-terminated copy in the arena, for libc and messages; ends at a zero byte inside. */
const char *text_cstr(struct render *r, const struct text *t);
bool text_is(const struct text *t, const char *literal);
bool text_equal(const struct text *a, const struct text *b);
int text_compare(const struct text *a, const struct text *b);
bool text_starts(const struct text *t, const struct text *prefix);
bool text_ends(const struct text *t, const struct text *suffix);
/* Byte offset at or after from, or -1. */
ptrdiff_t text_find(struct render *r, const struct text *t, const struct text *needle, size_t from);
ptrdiff_t text_rfind(struct render *r, const struct text *t, const struct text *needle);

/* -- code points --------------------------------------------------------- */

size_t text_length(struct render *r, const struct text *t);
/* Byte offset of code point i, at most len. */
size_t text_offset(struct render *r, const struct text *t, size_t i);
/* Reads the code point at *at (a wrong byte reads as U+FFFD) and steps over it. */
unsigned text_next(const struct text *t, size_t *at);

enum text_side { TEXT_LEFT = 1, TEXT_RIGHT = 2, TEXT_BOTH = 3 };

bool text_is_space(unsigned cp); /* as Python's str.isspace */
/* chars NULL: white space; else any code point of chars. */
const struct text *text_strip(struct render *r, const struct text *t, const struct text *chars,
                              enum text_side side);

enum text_case { TEXT_UPPER, TEXT_LOWER, TEXT_CAPITALIZE, TEXT_TITLE, TEXT_SWAPCASE };

const struct text *text_case(struct render *r, const struct text *t, enum text_case how);

/* Lines as Python's splitlines cuts them: strings in a list. */
struct list *text_lines(struct render *r, const struct text *t, bool keep_ends);
/* left and right times fill around t. */
const struct text *text_pad(struct render *r, const struct text *t, size_t left, size_t right,
                            const struct text *fill);
