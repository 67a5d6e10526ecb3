/* Buffers and strings with the origin of every byte.  See text.h. */
#include "daemon/template/text.h"

#include <string.h>
#include <utf8proc.h>

#include "common/alloc.h"
#include "common/utf8.h"
#include "daemon/template/eval.h"

#define BUFFER_FIRST 32

static void reserve(struct render *r, struct buffer *b, size_t more)
{
    size_t cap = b->cap ? b->cap : BUFFER_FIRST;
    char *p;

    if (more > r->limits.output_bytes || b->len > r->limits.output_bytes - more)
        arena_fail(&r->arena, ERR_TOO_LARGE, "the chat template makes more than %zu bytes of text",
                   r->limits.output_bytes);
    if (more <= b->cap - b->len)
        return;
    while (cap < b->len + more)
        cap *= 2;
    p = arena_bytes(&r->arena, cap);
    if (b->len)
        memcpy(p, b->p, b->len);
    b->p = p;
    if (b->marks) {
        unsigned char *marks = (unsigned char *)arena_bytes(&r->arena, cap);

        memcpy(marks, b->marks, b->len);
        b->marks = marks;
    }
    b->cap = cap;
}

/* From here on the buffer holds bytes of both origins. */
static void start_marks(struct render *r, struct buffer *b)
{
    b->marks = (unsigned char *)arena_bytes(&r->arena, b->cap);
    memset(b->marks, b->origin, b->len);
}

void buffer_add(struct render *r, struct buffer *b, const char *p, size_t n,
                enum template_origin origin)
{
    if (n == 0)
        return;
    render_work(r, n);
    reserve(r, b, n);
    if (b->len == 0)
        b->origin = (unsigned char)origin;
    if (!b->marks && b->origin != (unsigned char)origin)
        start_marks(r, b);
    if (b->marks)
        memset(b->marks + b->len, (int)origin, n);
    memcpy(b->p + b->len, p, n);
    b->len += n;
}

void buffer_adds(struct render *r, struct buffer *b, const char *literal)
{
    buffer_add(r, b, literal, strlen(literal), TEMPLATE_ORIGIN_TRUSTED);
}

void buffer_addc(struct render *r, struct buffer *b, char c, enum template_origin origin)
{
    buffer_add(r, b, &c, 1, origin);
}

void buffer_fill(struct render *r, struct buffer *b, char c, size_t n)
{
    char run[64];

    memset(run, c, sizeof run);
    for (size_t left = n; left > 0; left -= MIN(left, sizeof run))
        buffer_add(r, b, run, MIN(left, sizeof run), TEMPLATE_ORIGIN_TRUSTED);
}

void buffer_add_sub(struct render *r, struct buffer *b, const struct text *t, size_t from, size_t n)
{
    if (n == 0)
        return;
    if (!t->marks) {
        buffer_add(r, b, t->p + from, n, (enum template_origin)t->origin);
        return;
    }
    render_work(r, n);
    reserve(r, b, n);
    if (!b->marks)
        start_marks(r, b);
    memcpy(b->marks + b->len, t->marks + from, n);
    memcpy(b->p + b->len, t->p + from, n);
    b->len += n;
}

void buffer_add_text(struct render *r, struct buffer *b, const struct text *t)
{
    buffer_add_sub(r, b, t, 0, t->len);
}

const struct text *buffer_text(struct render *r, struct buffer *b)
{
    struct text *t = ARENA_NEW(&r->arena, struct text);
    struct buffer *tail;

    *t =
        (struct text){.p = b->p ? b->p : "", .len = b->len, .marks = b->marks, .origin = b->origin};
    if (b->cap > BUFFER_FIRST) {
        tail = ARENA_NEW(&r->arena, struct buffer);
        *tail = *b;
        t->tail = tail;
    }
    return t;
}

const struct text *text_borrow(struct render *r, const char *p, size_t n,
                               enum template_origin origin)
{
    struct text *t = ARENA_NEW(&r->arena, struct text);

    *t = (struct text){.p = p, .len = n, .origin = (unsigned char)origin};
    return t;
}

const struct text *text_concat(struct render *r, const struct text *a, const struct text *b)
{
    struct buffer *into = a->tail;
    struct text *t;

    if (a->len == 0)
        return b;
    if (b->len == 0)
        return a;
    if (!into || a->p != into->p || a->len != into->len) {
        into = ARENA_NEW(&r->arena, struct buffer);
        buffer_add_text(r, into, a);
    }
    buffer_add_text(r, into, b);
    t = ARENA_NEW(&r->arena, struct text);
    *t = (struct text){into->p, into->len, into->marks, into->origin, into};
    return t;
}

const struct text *text_sub(struct render *r, const struct text *t, size_t from, size_t n)
{
    struct text *sub;

    if (from == 0 && n == t->len)
        return t;
    sub = ARENA_NEW(&r->arena, struct text);
    *sub = (struct text){.p = t->p + from,
                         .len = n,
                         .marks = t->marks ? t->marks + from : NULL,
                         .origin = t->origin};
    return sub;
}

const struct text *text_repeat(struct render *r, const struct text *t, int64_t times)
{
    struct buffer b = {0};

    if (times <= 0 || t->len == 0)
        return text_borrow(r, "", 0, TEMPLATE_ORIGIN_TRUSTED);
    if ((uint64_t)times > SIZE_MAX / 2 / t->len)
        times = (int64_t)(SIZE_MAX / 2 / t->len);
    reserve(r, &b, (size_t)times * t->len);
    while (times--)
        buffer_add_text(r, &b, t);
    return buffer_text(r, &b);
}

enum template_origin text_origin(const struct text *t)
{
    if (!t->marks)
        return (enum template_origin)t->origin;
    return memchr(t->marks, TEMPLATE_ORIGIN_MESSAGE, t->len) ? TEMPLATE_ORIGIN_MESSAGE
                                                             : TEMPLATE_ORIGIN_TRUSTED;
}

const char *text_cstr(struct render *r, const struct text *t)
{
    char *s = arena_bytes(&r->arena, t->len + 1);

    if (t->len)
        memcpy(s, t->p, t->len);
    s[t->len] = '\0';
    return s;
}

bool text_is(const struct text *t, const char *literal)
{
    return t->len == strlen(literal) && memcmp(t->p, literal, t->len) == 0;
}

bool text_equal(const struct text *a, const struct text *b)
{
    return a->len == b->len && (a->p == b->p || memcmp(a->p, b->p, a->len) == 0);
}

int text_compare(const struct text *a, const struct text *b)
{
    int order = memcmp(a->p, b->p, MIN(a->len, b->len));

    return order ? order : (a->len > b->len) - (a->len < b->len);
}

bool text_starts(const struct text *t, const struct text *prefix)
{
    return t->len >= prefix->len && memcmp(t->p, prefix->p, prefix->len) == 0;
}

bool text_ends(const struct text *t, const struct text *suffix)
{
    return t->len >= suffix->len &&
           memcmp(t->p + t->len - suffix->len, suffix->p, suffix->len) == 0;
}

ptrdiff_t text_find(struct render *r, const struct text *t, const struct text *needle, size_t from)
{
    const char *at;

    if (from > t->len || needle->len > t->len - from)
        return -1;
    if (needle->len == 0)
        return (ptrdiff_t)from;
    at = memmem(t->p + from, t->len - from, needle->p, needle->len);
    render_work(r, at ? (size_t)(at - t->p) - from : t->len - from);
    return at ? at - t->p : -1;
}

ptrdiff_t text_rfind(struct render *r, const struct text *t, const struct text *needle)
{
    if (needle->len > t->len)
        return -1;
    render_work(r, t->len + needle->len);
    for (size_t at = t->len - needle->len + 1; at-- > 0;) {
        if (needle->len && t->p[at] != needle->p[0])
            continue;
        render_work(r, needle->len);
        if (memcmp(t->p + at, needle->p, needle->len) == 0)
            return (ptrdiff_t)at;
    }
    return -1;
}

/* An empty `old` stands before every code point and at the end, as in Python. */
static const struct text *insert_between(struct render *r, const struct text *t,
                                         const struct text *with, int64_t most)
{
    struct buffer b = {0};
    size_t at = 0;

    while (at < t->len) {
        size_t from = at;

        if (most-- > 0)
            buffer_add_text(r, &b, with);
        text_next(t, &at);
        buffer_add_sub(r, &b, t, from, at - from);
    }
    if (most > 0)
        buffer_add_text(r, &b, with);
    return buffer_text(r, &b);
}

const struct text *text_replace(struct render *r, const struct text *t, const struct text *old,
                                const struct text *with, int64_t most)
{
    struct buffer b = {0};
    size_t from = 0;

    if (most < 0)
        most = INT64_MAX;
    if (old->len == 0)
        return insert_between(r, t, with, most);
    while (most-- > 0) {
        ptrdiff_t at = text_find(r, t, old, from);

        if (at < 0)
            break;
        buffer_add_sub(r, &b, t, from, (size_t)at - from);
        buffer_add_text(r, &b, with);
        from = (size_t)at + old->len;
    }
    if (from == 0)
        return t;
    buffer_add_sub(r, &b, t, from, t->len - from);
    return buffer_text(r, &b);
}

/* -- code points --------------------------------------------------------- */

unsigned text_next(const struct text *t, size_t *at)
{
    unsigned cp;
    size_t n;

    if ((unsigned char)t->p[*at] < 0x80)
        return (unsigned char)t->p[(*at)++];
    n = utf8_decode(t->p + *at, t->len - *at, &cp);
    *at += n ? n : 1;
    return cp;
}

size_t text_length(struct render *r, const struct text *t)
{
    render_work(r, t->len);
    return utf8_length(t->p, t->len);
}

size_t text_offset(struct render *r, const struct text *t, size_t i)
{
    size_t at = 0;

    while (i-- > 0 && at < t->len)
        text_next(t, &at);
    render_work(r, at);
    return at;
}

bool text_is_space(unsigned cp)
{
    if (cp < 0x80)
        return cp == ' ' || (cp >= '\t' && cp <= '\r') || (cp >= 0x1C && cp <= 0x1F);
    return cp == 0x85 || cp == 0xA0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200A) ||
           cp == 0x2028 || cp == 0x2029 || cp == 0x202F || cp == 0x205F || cp == 0x3000;
}

static bool is_stripped(const struct text *chars, unsigned cp)
{
    if (!chars)
        return text_is_space(cp);
    for (size_t at = 0; at < chars->len;)
        if (text_next(chars, &at) == cp)
            return true;
    return false;
}

const struct text *text_strip(struct render *r, const struct text *t, const struct text *chars,
                              enum text_side side)
{
    size_t cost = chars ? chars->len + 1 : 1;
    size_t from = 0, to = t->len;

    while ((side & TEXT_LEFT) && from < to) {
        size_t at = from;

        if (!is_stripped(chars, text_next(t, &at)))
            break;
        render_work(r, cost);
        from = at;
    }
    while ((side & TEXT_RIGHT) && to > from) {
        size_t at = to - 1, end;

        /* Back to the lead byte; bytes that are no code point are taken one by one. */
        while (at > from && to - at < 4 && ((unsigned char)t->p[at] & 0xC0) == 0x80)
            at--;
        end = at;
        if (!is_stripped(chars, text_next(t, &end)) || end != to)
            break;
        render_work(r, cost);
        to = at;
    }
    return text_sub(r, t, from, to - from);
}

static unsigned cased(unsigned cp, bool upper)
{
    return (unsigned)(upper ? utf8proc_toupper((utf8proc_int32_t)cp)
                            : utf8proc_tolower((utf8proc_int32_t)cp));
}

static bool is_cased(unsigned cp)
{
    return cased(cp, true) != cp || cased(cp, false) != cp;
}

const struct text *text_case(struct render *r, const struct text *t, enum text_case how)
{
    struct buffer b = {0};
    bool in_word = false;
    char bytes[4];

    for (size_t at = 0; at < t->len;) {
        size_t from = at;
        unsigned cp = text_next(t, &at);
        bool up = how == TEXT_UPPER || (how == TEXT_CAPITALIZE && from == 0) ||
                  (how == TEXT_TITLE && !in_word) ||
                  (how == TEXT_SWAPCASE && cased(cp, false) == cp);

        in_word = is_cased(cp);
        if (cp == UTF8_REPLACEMENT)
            buffer_add_sub(r, &b, t, from, at - from);
        else if (cp == 0xDF && up) /* the one common letter whose upper case is two */
            buffer_add(r, &b, how == TEXT_UPPER || how == TEXT_SWAPCASE ? "SS" : "Ss", 2,
                       text_origin_at(t, from));
        else
            buffer_add(r, &b, bytes, utf8_encode(cased(cp, up), bytes), text_origin_at(t, from));
    }
    return buffer_text(r, &b);
}
