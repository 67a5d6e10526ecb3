/* Methods of strings, as Python's str has them.  To add one: a function, and a row below. */
#include "daemon/template/methods.h"

#include <string.h>
#include <utf8proc.h>

#include "common/alloc.h"
#include "daemon/template/show.h"
#include "daemon/template/text.h"

static const struct text *need_text(struct render *r, const struct args *a, size_t i,
                                    const char *name, const char *what)
{
    const struct text *t = args_text(r, a, i, name);

    if (!t)
        render_fail(r, "%s needs a string as its argument '%s'", what, name);
    return t;
}

/* -- case and white space ------------------------------------------------ */

#define CASE_METHOD(name, how)                                                                     \
    static struct value str_##name(struct render *r, struct value self, const struct args *a)      \
    {                                                                                              \
        (void)a;                                                                                   \
        return value_text(text_case(r, self.text, how));                                           \
    }

CASE_METHOD(upper, TEXT_UPPER)
CASE_METHOD(lower, TEXT_LOWER)
CASE_METHOD(capitalize, TEXT_CAPITALIZE)
CASE_METHOD(title, TEXT_TITLE)
CASE_METHOD(swapcase, TEXT_SWAPCASE)

#define STRIP_METHOD(name, side)                                                                   \
    static struct value str_##name(struct render *r, struct value self, const struct args *a)      \
    {                                                                                              \
        return value_text(text_strip(r, self.text, args_text(r, a, 0, "chars"), side));            \
    }

STRIP_METHOD(strip, TEXT_BOTH)
STRIP_METHOD(lstrip, TEXT_LEFT)
STRIP_METHOD(rstrip, TEXT_RIGHT)

/* -- splitting and joining ----------------------------------------------- */

static void add_part(struct render *r, struct list *l, const struct text *t, size_t from, size_t to)
{
    list_add(r, l, value_text(text_sub(r, t, from, to - from)));
}

static struct list *split_space(struct render *r, const struct text *t, int64_t most)
{
    struct list *l = list_new(r, 0);
    size_t at = 0;

    render_work(r, t->len);
    while (at < t->len) {
        size_t from = at, next = at;

        if (text_is_space(text_next(t, &next))) {
            at = next;
            continue;
        }
        if (most-- == 0) {
            const struct text *rest =
                text_strip(r, text_sub(r, t, from, t->len - from), NULL, TEXT_RIGHT);

            list_add(r, l, value_text(rest));
            return l;
        }
        for (; at < t->len; at = next) {
            next = at;
            if (text_is_space(text_next(t, &next)))
                break;
        }
        add_part(r, l, t, from, at);
    }
    return l;
}

static struct value str_split(struct render *r, struct value self, const struct args *a)
{
    const struct text *sep = args_text(r, a, 0, "sep");
    int64_t most = args_int(r, a, 1, "maxsplit", -1);
    struct list *l;
    size_t from = 0;

    if (!sep)
        return value_list(split_space(r, self.text, most));
    if (sep->len == 0)
        render_fail(r, "empty separator");
    l = list_new(r, 0);
    while (most-- != 0) {
        ptrdiff_t at = text_find(r, self.text, sep, from);

        if (at < 0)
            break;
        add_part(r, l, self.text, from, (size_t)at);
        from = (size_t)at + sep->len;
    }
    add_part(r, l, self.text, from, self.text->len);
    return value_list(l);
}

static void reverse(struct list *l)
{
    for (size_t i = 0, k = l->n; i + 1 < k; i++) {
        struct value swap = l->items[i];

        l->items[i] = l->items[--k];
        l->items[k] = swap;
    }
}

static struct list *rsplit_space(struct render *r, const struct text *t, int64_t most)
{
    struct list *words = split_space(r, t, -1);
    struct list *l = list_new(r, 0);
    size_t kept = most < 0 ? words->n : MIN((size_t)most, words->n);
    size_t rest = words->n - kept;

    if (rest) {
        const struct text *last = words->items[rest - 1].text;

        add_part(r, l, t, 0, (size_t)(last->p + last->len - t->p));
    }
    for (size_t i = rest; i < words->n; i++)
        list_add(r, l, words->items[i]);
    return l;
}

static struct value str_rsplit(struct render *r, struct value self, const struct args *a)
{
    const struct text *sep = args_text(r, a, 0, "sep");
    int64_t most = args_int(r, a, 1, "maxsplit", -1);
    const struct text *left = self.text;
    struct list *l;

    if (!sep)
        return value_list(rsplit_space(r, self.text, most));
    if (sep->len == 0)
        render_fail(r, "empty separator");
    l = list_new(r, 0);
    while (most-- != 0) {
        ptrdiff_t at = text_rfind(r, left, sep);

        if (at < 0)
            break;
        add_part(r, l, left, (size_t)at + sep->len, left->len);
        left = text_sub(r, left, 0, (size_t)at);
    }
    list_add(r, l, value_text(left));
    reverse(l);
    return value_list(l);
}

static bool is_line_end(unsigned cp)
{
    return (cp >= '\n' && cp <= '\r') || (cp >= 0x1C && cp <= 0x1E) || cp == 0x85 || cp == 0x2028 ||
           cp == 0x2029;
}

struct list *text_lines(struct render *r, const struct text *t, bool keep_ends)
{
    struct list *l = list_new(r, 0);
    size_t from = 0;

    render_work(r, t->len);
    for (size_t at = 0; at < t->len;) {
        size_t end = at;
        unsigned cp = text_next(t, &at);

        if (!is_line_end(cp))
            continue;
        if (cp == '\r' && at < t->len && t->p[at] == '\n')
            at++;
        add_part(r, l, t, from, keep_ends ? at : end);
        from = at;
    }
    if (from < t->len)
        add_part(r, l, t, from, t->len);
    return l;
}

static struct value str_splitlines(struct render *r, struct value self, const struct args *a)
{
    return value_list(text_lines(r, self.text, args_bool(r, a, 0, "keepends", false)));
}

static struct value str_join(struct render *r, struct value self, const struct args *a)
{
    struct items items = value_items(r, args_need(r, a, 0, "iterable", "join()"));
    struct buffer b = {0};

    for (size_t i = 0; i < items.n; i++) {
        if (items.p[i].type != VALUE_STRING)
            render_fail(r, "sequence item %zu: expected str instance, %s found", i,
                        value_type_name(items.p[i]));
        if (i)
            buffer_add_text(r, &b, self.text);
        buffer_add_text(r, &b, items.p[i].text);
    }
    return value_text(buffer_text(r, &b));
}

static struct value partition(struct render *r, const struct text *t, const struct text *sep,
                              ptrdiff_t at, bool right)
{
    struct list *l = list_new(r, 3);
    struct value empty = value_cstr(r, "");

    if (at < 0) {
        list_add(r, l, right ? empty : value_text(t));
        list_add(r, l, empty);
        list_add(r, l, right ? value_text(t) : empty);
    } else {
        add_part(r, l, t, 0, (size_t)at);
        add_part(r, l, t, (size_t)at, (size_t)at + sep->len);
        add_part(r, l, t, (size_t)at + sep->len, t->len);
    }
    return (struct value){.type = VALUE_TUPLE, .list = l};
}

static struct value str_partition(struct render *r, struct value self, const struct args *a)
{
    const struct text *sep = need_text(r, a, 0, "sep", "partition()");

    return partition(r, self.text, sep, text_find(r, self.text, sep, 0), false);
}

static struct value str_rpartition(struct render *r, struct value self, const struct args *a)
{
    const struct text *sep = need_text(r, a, 0, "sep", "rpartition()");

    return partition(r, self.text, sep, text_rfind(r, self.text, sep), true);
}

/* -- finding and replacing ----------------------------------------------- */

static struct value str_replace(struct render *r, struct value self, const struct args *a)
{
    const struct text *old = need_text(r, a, 0, "old", "replace()");
    const struct text *with = need_text(r, a, 1, "new", "replace()");

    return value_text(text_replace(r, self.text, old, with, args_int(r, a, 2, "count", -1)));
}

/* One string, or any of a tuple of them. */
static bool matches_any(struct render *r, const struct text *t, struct value v, bool at_end)
{
    if (value_is_list(v)) {
        for (size_t i = 0; i < v.list->n; i++)
            if (v.list->items[i].type == VALUE_STRING &&
                matches_any(r, t, v.list->items[i], at_end))
                return true;
        return false;
    }
    value_known(r, v);
    if (v.type != VALUE_STRING)
        render_fail(r, "%s first arg must be str or a tuple of str, not %s",
                    at_end ? "endswith" : "startswith", value_type_name(v));
    render_work(r, v.text->len);
    return at_end ? text_ends(t, v.text) : text_starts(t, v.text);
}

/* The part that start and end (arguments 1 and 2) leave, in code points as in Python. */
static const struct text *cut(struct render *r, const struct text *t, const struct args *a,
                              int64_t *ret_start)
{
    int64_t len, start, end;
    size_t from, to;

    *ret_start = 0;
    if (a->n < 2)
        return t;
    len = (int64_t)text_length(r, t);
    start = args_int(r, a, 1, "start", 0);
    end = args_int(r, a, 2, "end", len);
    start = MAX(start < 0 ? start + len : start, 0);
    end = MIN(end < 0 ? end + len : end, len);
    *ret_start = start;
    if (start > end)
        return NULL;
    from = text_offset(r, t, (size_t)start);
    to = text_offset(r, t, (size_t)end);
    return text_sub(r, t, from, to - from);
}

static struct value str_startswith(struct render *r, struct value self, const struct args *a)
{
    int64_t start;
    const struct text *t = cut(r, self.text, a, &start);

    return value_bool(t && matches_any(r, t, args_need(r, a, 0, "prefix", "startswith()"), false));
}

static struct value str_endswith(struct render *r, struct value self, const struct args *a)
{
    int64_t start;
    const struct text *t = cut(r, self.text, a, &start);

    return value_bool(t && matches_any(r, t, args_need(r, a, 0, "suffix", "endswith()"), true));
}

static int64_t find(struct render *r, const struct text *self, const struct args *a, bool last)
{
    const struct text *needle = need_text(r, a, 0, "sub", "find()");
    int64_t start;
    const struct text *t = cut(r, self, a, &start);
    ptrdiff_t at;

    if (!t)
        return -1;
    at = last ? text_rfind(r, t, needle) : text_find(r, t, needle, 0);
    return at < 0 ? -1 : start + (int64_t)text_length(r, text_sub(r, t, 0, (size_t)at));
}

static struct value str_find(struct render *r, struct value self, const struct args *a)
{
    return value_int(find(r, self.text, a, false));
}

static struct value str_rfind(struct render *r, struct value self, const struct args *a)
{
    return value_int(find(r, self.text, a, true));
}

static struct value index_or_fail(struct render *r, int64_t at)
{
    if (at < 0)
        render_fail(r, "substring not found");
    return value_int(at);
}

static struct value str_index(struct render *r, struct value self, const struct args *a)
{
    return index_or_fail(r, find(r, self.text, a, false));
}

static struct value str_rindex(struct render *r, struct value self, const struct args *a)
{
    return index_or_fail(r, find(r, self.text, a, true));
}

static struct value str_count(struct render *r, struct value self, const struct args *a)
{
    const struct text *needle = need_text(r, a, 0, "sub", "count()");
    int64_t n = 0;
    size_t from = 0;

    if (needle->len == 0)
        return value_int((int64_t)text_length(r, self.text) + 1);
    for (ptrdiff_t at; (at = text_find(r, self.text, needle, from)) >= 0; n++)
        from = (size_t)at + needle->len;
    return value_int(n);
}

static struct value str_removeprefix(struct render *r, struct value self, const struct args *a)
{
    const struct text *t = self.text;
    const struct text *prefix = need_text(r, a, 0, "prefix", "removeprefix()");
    size_t n = text_starts(t, prefix) ? prefix->len : 0;

    return value_text(text_sub(r, t, n, t->len - n));
}

static struct value str_removesuffix(struct render *r, struct value self, const struct args *a)
{
    const struct text *t = self.text;
    const struct text *suffix = need_text(r, a, 0, "suffix", "removesuffix()");

    return value_text(text_sub(r, t, 0, t->len - (text_ends(t, suffix) ? suffix->len : 0)));
}

/* -- padding ------------------------------------------------------------- */

const struct text *text_pad(struct render *r, const struct text *t, size_t left, size_t right,
                            const struct text *fill)
{
    struct buffer b = {0};

    if (left + right == 0)
        return t;
    if (left)
        buffer_add_text(r, &b, text_repeat(r, fill, (int64_t)left));
    buffer_add_text(r, &b, t);
    if (right)
        buffer_add_text(r, &b, text_repeat(r, fill, (int64_t)right));
    return buffer_text(r, &b);
}

/* Columns missing up to the width in argument 0. */
static size_t missing(struct render *r, const struct text *t, const struct args *a)
{
    int64_t width = value_to_index(r, args_need(r, a, 0, "width", "padding"), "padding");
    int64_t len = (int64_t)text_length(r, t);

    return width > len ? (size_t)(width - len) : 0;
}

static const struct text *fill_of(struct render *r, const struct args *a)
{
    const struct text *fill = args_text(r, a, 1, "fillchar");

    return fill && fill->len ? fill : value_cstr(r, " ").text;
}

static struct value str_ljust(struct render *r, struct value self, const struct args *a)
{
    return value_text(text_pad(r, self.text, 0, missing(r, self.text, a), fill_of(r, a)));
}

static struct value str_rjust(struct render *r, struct value self, const struct args *a)
{
    return value_text(text_pad(r, self.text, missing(r, self.text, a), 0, fill_of(r, a)));
}

/* Python puts the odd column left when the width is odd. */
static struct value str_center(struct render *r, struct value self, const struct args *a)
{
    size_t n = missing(r, self.text, a);
    size_t width = n + text_length(r, self.text);
    size_t left = n / 2 + (n & width & 1);

    return value_text(text_pad(r, self.text, left, n - left, fill_of(r, a)));
}

static struct value str_zfill(struct render *r, struct value self, const struct args *a)
{
    const struct text *t = self.text;
    size_t sign = t->len && (t->p[0] == '-' || t->p[0] == '+');
    const struct text *digits = text_pad(r, text_sub(r, t, sign, t->len - sign), missing(r, t, a),
                                         0, value_cstr(r, "0").text);

    return value_text(sign ? text_concat(r, text_sub(r, t, 0, 1), digits) : digits);
}

static struct value str_expandtabs(struct render *r, struct value self, const struct args *a)
{
    int64_t size = args_int(r, a, 0, "tabsize", 8);
    struct buffer b = {0};
    int64_t column = 0;

    for (size_t at = 0; at < self.text->len;) {
        size_t from = at;
        unsigned cp = text_next(self.text, &at);

        if (cp == '\t' && size > 0) {
            buffer_fill(r, &b, ' ', (size_t)(size - column % size));
            column = 0;
            continue;
        }
        column = cp == '\n' || cp == '\r' ? 0 : column + 1;
        if (cp != '\t')
            buffer_add_sub(r, &b, self.text, from, at - from);
    }
    return value_text(buffer_text(r, &b));
}

/* -- asking -------------------------------------------------------------- */

static bool is_category(unsigned cp, unsigned from, unsigned to)
{
    unsigned c = (unsigned)utf8proc_category((utf8proc_int32_t)cp);

    return c >= from && c <= to;
}

static bool is_alpha(unsigned cp)
{
    return is_category(cp, UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LO);
}

static bool is_decimal(unsigned cp)
{
    return is_category(cp, UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_ND);
}

static bool is_alnum(unsigned cp)
{
    return is_alpha(cp) || is_category(cp, UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO);
}

static struct value all_are(struct render *r, const struct text *t, bool (*is)(unsigned cp))
{
    render_work(r, t->len);
    for (size_t at = 0; at < t->len;)
        if (!is(text_next(t, &at)))
            return value_bool(false);
    return value_bool(t->len > 0);
}

#define ALL_METHOD(name, is)                                                                       \
    static struct value str_##name(struct render *r, struct value self, const struct args *a)      \
    {                                                                                              \
        (void)a;                                                                                   \
        return all_are(r, self.text, is);                                                          \
    }

ALL_METHOD(isalpha, is_alpha)
ALL_METHOD(isdigit, is_decimal)
ALL_METHOD(isalnum, is_alnum)
ALL_METHOD(isspace, text_is_space)

static struct value str_isupper(struct render *r, struct value self, const struct args *a)
{
    return value_bool(test_apply(r, "upper", self, a));
}

static struct value str_islower(struct render *r, struct value self, const struct args *a)
{
    return value_bool(test_apply(r, "lower", self, a));
}

static struct value str_format(struct render *r, struct value self, const struct args *a)
{
    return value_text(show_braces(r, self.text, a));
}

#define ROW(name)                                                                                  \
    {                                                                                              \
        VALUE_STRING, #name, str_##name                                                            \
    }

const struct method_row methods_text[] = {
    ROW(upper),
    ROW(lower),
    ROW(capitalize),
    ROW(title),
    ROW(swapcase),
    ROW(strip),
    ROW(lstrip),
    ROW(rstrip),
    ROW(split),
    ROW(rsplit),
    ROW(splitlines),
    ROW(join),
    ROW(partition),
    ROW(rpartition),
    ROW(replace),
    ROW(startswith),
    ROW(endswith),
    ROW(find),
    ROW(rfind),
    ROW(index),
    ROW(rindex),
    ROW(count),
    ROW(format),
    ROW(removeprefix),
    ROW(removesuffix),
    ROW(ljust),
    ROW(rjust),
    ROW(center),
    ROW(zfill),
    ROW(expandtabs),
    ROW(isalpha),
    ROW(isdigit),
    ROW(isalnum),
    ROW(isspace),
    ROW(isupper),
    ROW(islower),
    {VALUE_STRING, "casefold", str_lower},
    {VALUE_STRING, "isdecimal", str_isdigit},
    {VALUE_STRING, "isnumeric", str_isdigit},
    {VALUE_UNDEFINED, NULL, NULL},
};
