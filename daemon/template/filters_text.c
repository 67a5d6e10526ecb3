/* Filters that make text and numbers.  To add one: a function, and a row at the end. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "daemon/template/eval.h"
#include "daemon/template/show.h"
#include "daemon/template/text.h"

static struct value filter_upper(struct render *r, struct value v, const struct args *a)
{
    (void)a;
    return value_text(text_case(r, show_str(r, v), TEXT_UPPER));
}

static struct value filter_lower(struct render *r, struct value v, const struct args *a)
{
    (void)a;
    return value_text(text_case(r, show_str(r, v), TEXT_LOWER));
}

static struct value filter_capitalize(struct render *r, struct value v, const struct args *a)
{
    (void)a;
    return value_text(text_case(r, show_str(r, v), TEXT_CAPITALIZE));
}

/* A word begins after white space and after - ( { [ <; Python's title() is another one. */
static struct value filter_title(struct render *r, struct value v, const struct args *a)
{
    const struct text *t = show_str(r, v);
    struct buffer b = {0};
    size_t at = 0;

    (void)a;
    while (at < t->len) {
        size_t from = at, end = at;

        while (at < t->len) {
            unsigned cp = text_next(t, &at);

            if (text_is_space(cp) || (cp < 0x80 && strchr("-({[<", (int)cp) && cp))
                break;
            end = at;
        }
        buffer_add_text(r, &b, text_case(r, text_sub(r, t, from, end - from), TEXT_CAPITALIZE));
        buffer_add_sub(r, &b, t, end, at - end);
    }
    return value_text(buffer_text(r, &b));
}

static struct value filter_trim(struct render *r, struct value v, const struct args *a)
{
    args_check(r, a, "trim", 1, "chars");
    return value_text(text_strip(r, show_str(r, v), args_text(r, a, 0, "chars"), TEXT_BOTH));
}

static struct value filter_replace(struct render *r, struct value v, const struct args *a)
{
    const struct text *old = show_str(r, args_need(r, a, 0, "old", "replace"));
    const struct text *with = show_str(r, args_need(r, a, 1, "new", "replace"));

    args_check(r, a, "replace", 3, "old new count");
    return value_text(text_replace(r, show_str(r, v), old, with, args_int(r, a, 2, "count", -1)));
}

static struct value filter_string(struct render *r, struct value v, const struct args *a)
{
    (void)a;
    return value_text(show_str(r, v));
}

static struct value filter_escape(struct render *r, struct value v, const struct args *a)
{
    static const char from[] = "&<>'\"";
    static const char *const to[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    const struct text *t = show_str(r, v);
    struct buffer b = {0};

    (void)a;
    for (size_t at = 0; at < t->len; at++) {
        const char *special = t->p[at] ? strchr(from, t->p[at]) : NULL;

        if (special)
            buffer_add(r, &b, to[special - from], strlen(to[special - from]),
                       text_origin_at(t, at));
        else
            buffer_add_sub(r, &b, t, at, 1);
    }
    return value_text(buffer_text(r, &b));
}

static struct value filter_format(struct render *r, struct value v, const struct args *a)
{
    struct list *l = list_new(r, a->n);
    struct dict *d = dict_new(r);

    if (a->n && a->n_kw)
        render_fail(r, "format cannot handle positional and keyword arguments at the same time");
    for (size_t i = 0; i < a->n; i++)
        list_add(r, l, a->pos[i]);
    for (size_t i = 0; i < a->n_kw; i++)
        dict_put(r, d, value_text(text_borrow(r, a->kw[i].name, a->kw[i].len, a->kw[i].origin)),
                 a->kw[i].value);
    return value_text(
        show_percent(r, show_str(r, v),
                     a->n_kw ? value_dict(d) : (struct value){.type = VALUE_TUPLE, .list = l}));
}

static struct value filter_center(struct render *r, struct value v, const struct args *a)
{
    const struct text *t = show_str(r, v);
    int64_t width = args_int(r, a, 0, "width", 80);
    size_t len = text_length(r, t);
    size_t n = width > (int64_t)len ? (size_t)width - len : 0;
    size_t left = n / 2 + (n & (size_t)width & 1);

    return value_text(text_pad(r, t, left, n - left, value_cstr(r, " ").text));
}

static struct value filter_indent(struct render *r, struct value v, const struct args *a)
{
    const struct value *width = args_get(a, 0, "width");
    bool first = args_bool(r, a, 1, "first", false);
    bool blank = args_bool(r, a, 2, "blank", false);
    const struct text *newline = value_cstr(r, "\n").text;
    const struct list *lines = text_lines(r, text_concat(r, show_str(r, v), newline), false);
    const struct text *by;
    struct buffer b = {0};

    args_check(r, a, "indent", 3, "width first blank");
    if (width && width->type == VALUE_STRING)
        by = width->text;
    else
        by = text_repeat(r, value_cstr(r, " ").text, args_int(r, a, 0, "width", 4));
    for (size_t i = 0; i < lines->n; i++) {
        if (i)
            buffer_add_text(r, &b, newline);
        if (i ? blank || lines->items[i].text->len : first)
            buffer_add_text(r, &b, by);
        buffer_add_text(r, &b, lines->items[i].text);
    }
    return value_text(buffer_text(r, &b));
}

static struct value filter_truncate(struct render *r, struct value v, const struct args *a)
{
    const struct text *t = show_str(r, v);
    int64_t length = args_int(r, a, 0, "length", 255);
    const struct text *end = args_text(r, a, 2, "end");
    int64_t leeway = args_int(r, a, 3, "leeway", 5);
    const struct text *cut;
    ptrdiff_t space;
    int64_t room;

    end = end ? end : value_cstr(r, "...").text;
    room = length - (int64_t)text_length(r, end);
    if (room < 0 || leeway < 0)
        render_fail(r, "truncate: the length is smaller than that of its end");
    if ((int64_t)text_length(r, t) <= length + leeway)
        return value_text(t);
    cut = text_sub(r, t, 0, text_offset(r, t, (size_t)room));
    if (!args_bool(r, a, 1, "killwords", false)) {
        space = text_rfind(r, cut, value_cstr(r, " ").text);
        if (space >= 0)
            cut = text_sub(r, cut, 0, (size_t)space);
    }
    return value_text(text_concat(r, cut, end));
}

static struct value filter_wordcount(struct render *r, struct value v, const struct args *a)
{
    const struct text *t = show_str(r, v);
    int64_t n = 0;
    bool inside = false;

    (void)a;
    render_work(r, t->len);
    for (size_t at = 0; at < t->len; at++) {
        unsigned char c = (unsigned char)t->p[at];
        bool word = c >= 0x80 || c == '_' || (c >= '0' && c <= '9') ||
                    ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');

        n += word && !inside;
        inside = word;
    }
    return value_int(n);
}

static struct value filter_striptags(struct render *r, struct value v, const struct args *a)
{
    const struct text *t = show_str(r, v);
    struct buffer b = {0};
    bool tag = false, space = false;

    (void)a;
    for (size_t at = 0; at < t->len;) {
        size_t from = at;
        unsigned cp = text_next(t, &at);

        if (cp == '<' && memchr(t->p + at, '>', t->len - at))
            tag = true;
        else if (cp == '>' && tag)
            tag = false;
        else if (!tag && text_is_space(cp))
            space = b.len > 0;
        else if (!tag) {
            if (space)
                buffer_adds(r, &b, " ");
            space = false;
            buffer_add_sub(r, &b, t, from, at - from);
        }
        render_work(r, 0);
    }
    return value_text(buffer_text(r, &b));
}

static struct value filter_urlencode(struct render *r, struct value v, const struct args *a)
{
    const struct text *t = show_str(r, v);
    struct buffer b = {0};
    char hex[4];

    (void)a;
    for (size_t at = 0; at < t->len; at++) {
        unsigned char c = (unsigned char)t->p[at];

        if ((c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
            (c && strchr("_.-~/", c))) {
            buffer_add_sub(r, &b, t, at, 1);
            continue;
        }
        snprintf(hex, sizeof hex, "%%%02X", c);
        buffer_add(r, &b, hex, 3, text_origin_at(t, at));
    }
    return value_text(buffer_text(r, &b));
}

/* -- numbers ------------------------------------------------------------- */

/* All of t, but for white space around it, as a number in base; false when it is none. */
static bool parse_int(struct render *r, const struct text *t, int64_t base, __int128 *ret_value)
{
    const struct text *s = text_strip(r, t, NULL, TEXT_BOTH);
    __int128 sum = 0;
    size_t at = s->len && (s->p[0] == '-' || s->p[0] == '+');
    size_t digits = 0;

    if (s->len > at + 2 && s->p[at] == '0') {
        char c = (char)(s->p[at + 1] | 0x20);

        if ((base == 16 && c == 'x') || (base == 8 && c == 'o') || (base == 2 && c == 'b'))
            at += 2;
    }
    for (; at < s->len; at++, digits++) {
        char c = (char)(s->p[at] | 0x20);
        int digit = s->p[at] >= '0' && s->p[at] <= '9' ? s->p[at] - '0'
                    : c >= 'a' && c <= 'z'             ? c - 'a' + 10
                                                       : 99;

        if (digit >= base || __builtin_mul_overflow(sum, (__int128)base, &sum) ||
            __builtin_add_overflow(sum, (__int128)digit, &sum))
            return false;
    }
    *ret_value = s->len && s->p[0] == '-' ? -sum : sum;
    return digits > 0;
}

static bool parse_float(struct render *r, const struct text *t, double *ret_value)
{
    const char *s = text_cstr(r, text_strip(r, t, NULL, TEXT_BOTH));
    char *end;

    if (!*s || strpbrk(s, "xXpP")) /* strtod reads hexadecimal, Python does not */
        return false;
    *ret_value = strtod(s, &end);
    return !*end;
}

static struct value filter_int(struct render *r, struct value v, const struct args *a)
{
    const struct value *otherwise = args_get(a, 0, "default");
    int64_t base = args_int(r, a, 1, "base", 10);
    struct value none = otherwise ? *otherwise : value_int(0);
    __int128 i;
    double d;

    args_check(r, a, "int", 2, "default base");
    value_known(r, v);
    if (v.type == VALUE_STRING) {
        if (base >= 2 && base <= 36 && parse_int(r, v.text, base, &i))
            return value_int(i);
        if (!parse_float(r, v.text, &d))
            return none;
    } else if (value_is_number(v)) {
        if (v.type == VALUE_INT)
            return v;
        d = value_as_double(v);
    } else {
        return none;
    }
    return fabs(d) < 0x1p126 ? value_int((__int128)d) : none;
}

static struct value filter_float(struct render *r, struct value v, const struct args *a)
{
    const struct value *otherwise = args_get(a, 0, "default");
    double d;

    args_check(r, a, "float", 1, "default");
    value_known(r, v);
    if (value_is_number(v))
        return value_float(value_as_double(v));
    if (v.type == VALUE_STRING && parse_float(r, v.text, &d))
        return value_float(d);
    return otherwise ? *otherwise : value_float(0);
}

static struct value filter_abs(struct render *r, struct value v, const struct args *a)
{
    (void)a;
    value_known(r, v);
    if (v.type == VALUE_FLOAT)
        return value_float(fabs(v.real));
    if (!value_is_number(v))
        render_fail(r, "bad operand type for abs(): '%s'", value_type_name(v));
    return v.type == VALUE_INT && v.integer < 0 ? eval_binary(r, NODE_SUB, value_int(0), v) : v;
}

/* Rounds the decimal digits of the exact binary value, half to even, as Python's round(). */
static double round_digits(double d, int64_t precision)
{
    char text[400];

    if (precision >= 0) {
        snprintf(text, sizeof text, "%.*f", (int)MIN(precision, 60), d);
        return strtod(text, NULL);
    }
    return nearbyint(d / pow(10, (double)-precision)) * pow(10, (double)-precision);
}

static struct value filter_round(struct render *r, struct value v, const struct args *a)
{
    int64_t precision = args_int(r, a, 0, "precision", 0);
    const struct text *method = args_text(r, a, 1, "method");
    double scale, d;

    args_check(r, a, "round", 2, "precision method");
    value_known(r, v);
    if (!value_is_number(v))
        render_fail(r, "type %s doesn't define __round__ method", value_type_name(v));
    if (!method || text_is(method, "common")) {
        if (v.type != VALUE_FLOAT)
            return precision >= 0
                       ? v
                       : value_int((__int128)round_digits(value_as_double(v), precision));
        return isfinite(v.real) ? value_float(round_digits(v.real, precision)) : v;
    }
    scale = pow(10, (double)precision);
    d = value_as_double(v) * scale;
    if (text_is(method, "ceil"))
        return value_float(ceil(d) / scale);
    if (text_is(method, "floor"))
        return value_float(floor(d) / scale);
    render_fail(r, "the method of round must be common, ceil or floor");
}

/* -- JSON ---------------------------------------------------------------- */

static struct value filter_tojson(struct render *r, struct value v, const struct args *a)
{
    const struct value *indent = args_get(a, 1, "indent");
    const struct value *separators = args_get(a, 2, "separators");
    struct show_json how = {.indent = -1, .item_separator = ", ", .key_separator = ": "};
    struct buffer b = {0};

    args_check(r, a, "tojson", 4, "ensure_ascii indent separators sort_keys");
    how.ascii = args_bool(r, a, 0, "ensure_ascii", false);
    how.sort_keys = args_bool(r, a, 3, "sort_keys", false);
    if (indent && indent->type != VALUE_NONE) {
        how.indent = (int)MAX(0, MIN(value_to_index(r, *indent, "indent"), 64));
        how.item_separator = ",";
    }
    if (separators && separators->type != VALUE_NONE) {
        if (!value_is_list(*separators) || separators->list->n != 2 ||
            separators->list->items[0].type != VALUE_STRING ||
            separators->list->items[1].type != VALUE_STRING)
            render_fail(r, "the separators of tojson must be two strings");
        how.item_separator = text_cstr(r, separators->list->items[0].text);
        how.key_separator = text_cstr(r, separators->list->items[1].text);
    }
    show_add_json(r, &b, v, &how);
    return value_text(buffer_text(r, &b));
}

/* What it reads is as trusted as the least trusted byte of its text. */
static struct value filter_from_json(struct render *r, struct value v, const struct args *a)
{
    json_error_t error;
    json_t *read;

    (void)a;
    value_known(r, v);
    if (v.type != VALUE_STRING)
        render_fail(r, "from_json needs a string, not '%s'", value_type_name(v));
    render_work(r, v.text->len * 8);
    read = json_loadb(v.text->p, v.text->len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (!read)
        render_fail(r, "from_json: %s", error.text);
    /* Values borrow its strings, so it lives as long as they do. */
    if (!r->json)
        r->json = json_array();
    json_array_append_new(r->json, read);
    return value_of_json(r, read, text_origin(v.text));
}

const struct filter filters_text[] = {
    {"upper", filter_upper},
    {"lower", filter_lower},
    {"capitalize", filter_capitalize},
    {"title", filter_title},
    {"trim", filter_trim},
    {"replace", filter_replace},
    {"string", filter_string},
    {"safe", filter_string},
    {"escape", filter_escape},
    {"e", filter_escape},
    {"forceescape", filter_escape},
    {"format", filter_format},
    {"center", filter_center},
    {"indent", filter_indent},
    {"truncate", filter_truncate},
    {"wordcount", filter_wordcount},
    {"striptags", filter_striptags},
    {"urlencode", filter_urlencode},
    {"int", filter_int},
    {"float", filter_float},
    {"abs", filter_abs},
    {"round", filter_round},
    {"tojson", filter_tojson},
    {"from_json", filter_from_json},
    {NULL, NULL},
};
