/*
 * str - growable bytes, and borrowed views of bytes.
 *
 * A struct str is always terminated by a zero byte past len, but may hold any
 * bytes.  {0} is an empty one.  A struct view borrows: it is valid until its
 * owner changes, and is not terminated.
 *
 * Any thread; one owner at a time.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct str {
    char *p; /* NULL while empty and never grown: use str_text() to read */
    size_t len;
    size_t cap;
};

void str_add(struct str *s, const void *bytes, size_t n);
void str_adds(struct str *s, const char *text);
void str_addc(struct str *s, char c);
void str_addf(struct str *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void str_vaddf(struct str *s, const char *fmt, va_list ap);
void str_add_utf8(struct str *s, unsigned codepoint);
void str_truncate(struct str *s, size_t len);
void str_remove_front(struct str *s, size_t n);
void str_clear(struct str *s);             /* frees; {0} again */
char *str_take(struct str *s);             /* the caller's now; s is {0} again */
const char *str_text(const struct str *s); /* never NULL */

struct view {
    const char *p;
    size_t len;
};

#define VIEW(literal) ((struct view){(literal), sizeof(literal) - 1})

struct view view_of(const char *text);
struct view view_of_str(const struct str *s);
bool view_eq(struct view a, struct view b);
bool view_is(struct view a, const char *text);
bool view_starts(struct view a, struct view prefix);
struct view view_sub(struct view a, size_t from, size_t len); /* cut to what is there */
char *view_dup(struct view a);                                /* terminated copy */
/* Offset of the first needle at or after from, or -1. */
ptrdiff_t view_find(struct view hay, struct view needle, size_t from);
