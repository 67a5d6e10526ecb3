/* Growable bytes and borrowed views; see str.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/str.h"
#include "common/utf8.h"

static void reserve(struct str *s, size_t more)
{
    ARRAY_GROW(s->p, s->len + more + 1, s->cap);
}

void str_add(struct str *s, const void *bytes, size_t n)
{
    reserve(s, n);
    if (n)
        memcpy(s->p + s->len, bytes, n);
    s->len += n;
    s->p[s->len] = '\0';
}

void str_adds(struct str *s, const char *text)
{
    str_add(s, text, strlen(text));
}

void str_addc(struct str *s, char c)
{
    str_add(s, &c, 1);
}

void str_vaddf(struct str *s, const char *fmt, va_list ap)
{
    va_list again;
    int n;

    va_copy(again, ap);
    n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (n < 0)
        return;
    reserve(s, (size_t)n);
    vsnprintf(s->p + s->len, (size_t)n + 1, fmt, ap);
    s->len += (size_t)n;
}

void str_addf(struct str *s, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    str_vaddf(s, fmt, ap);
    va_end(ap);
}

void str_add_utf8(struct str *s, unsigned codepoint)
{
    char buf[4];

    str_add(s, buf, utf8_encode(codepoint, buf));
}

void str_truncate(struct str *s, size_t len)
{
    if (len < s->len) {
        s->len = len;
        s->p[len] = '\0';
    }
}

void str_remove_front(struct str *s, size_t n)
{
    if (n == 0 || s->len == 0)
        return;
    n = MIN(n, s->len);
    memmove(s->p, s->p + n, s->len - n + 1);
    s->len -= n;
}

void str_clear(struct str *s)
{
    free(s->p);
    *s = (struct str){0};
}

char *str_take(struct str *s)
{
    char *p = s->p ? s->p : xstrdup("");

    *s = (struct str){0};
    return p;
}

const char *str_text(const struct str *s)
{
    return s->p ? s->p : "";
}

struct view view_of(const char *text)
{
    return (struct view){text, strlen(text)};
}

struct view view_of_str(const struct str *s)
{
    return (struct view){str_text(s), s->len};
}

bool view_eq(struct view a, struct view b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.p, b.p, a.len) == 0);
}

bool view_is(struct view a, const char *text)
{
    return view_eq(a, view_of(text));
}

bool view_starts(struct view a, struct view prefix)
{
    return a.len >= prefix.len && (prefix.len == 0 || memcmp(a.p, prefix.p, prefix.len) == 0);
}

struct view view_sub(struct view a, size_t from, size_t len)
{
    from = MIN(from, a.len);
    /* An empty view may have no bytes behind it, and NULL + 0 is not defined. */
    return (struct view){from ? a.p + from : a.p, MIN(len, a.len - from)};
}

char *view_dup(struct view a)
{
    char *p = xmalloc(a.len + 1);

    if (a.len)
        memcpy(p, a.p, a.len);
    p[a.len] = '\0';
    return p;
}

ptrdiff_t view_find(struct view hay, struct view needle, size_t from)
{
    const char *at;

    if (from > hay.len)
        return -1;
    if (needle.len == 0)
        return (ptrdiff_t)from;
    if (needle.len > hay.len - from)
        return -1;
    at = memmem(hay.p + from, hay.len - from, needle.p, needle.len);
    return at ? at - hay.p : -1;
}
