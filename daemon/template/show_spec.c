/* "%" formatting and str.format: one specification, two spellings of it.  See show.h. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/utf8.h"
#include "daemon/template/eval.h"
#include "daemon/template/show.h"

#define MAX_PRECISION 100
#define MAX_WIDTH     100000

struct spec {
    const struct text *fill; /* one code point; NULL: a space */
    char align;              /* '<' '>' '^' '=' or 0 */
    char sign;               /* '+' ' ' or 0 */
    bool alternate;
    bool zero;
    bool comma;
    int64_t width;
    int64_t precision; /* -1: none */
    char type;         /* 0: none */
};

/* Digits of u in base 2..16 before end; returns their start. */
static char *digits_of(unsigned __int128 u, unsigned base, bool upper, char *end)
{
    const char *set = upper ? "0123456789ABCDEF" : "0123456789abcdef";

    *end = '\0';
    do {
        *--end = set[(unsigned)(u % base)];
        u /= base;
    } while (u);
    return end;
}

/* prefix (sign, 0x) and body, padded to the width between or around them. */
static void add_padded(struct render *r, struct buffer *b, const struct spec *s, const char *prefix,
                       const struct text *body, char default_align)
{
    size_t len = strlen(prefix) + text_length(r, body);
    size_t pad = s->width > (int64_t)len ? (size_t)s->width - len : 0;
    char align = s->align ? s->align : s->zero && default_align == '>' ? '=' : default_align;
    size_t before = align == '>' || align == '=' ? pad : align == '^' ? pad / 2 : 0;
    bool zeros = s->zero && !s->fill && align == '=';

    if (align == '=')
        buffer_adds(r, b, prefix);
    for (size_t i = 0; i < before; i++) {
        if (s->fill)
            buffer_add_text(r, b, s->fill);
        else
            buffer_adds(r, b, zeros ? "0" : " ");
    }
    if (align != '=')
        buffer_adds(r, b, prefix);
    buffer_add_text(r, b, body);
    for (size_t i = before; i < pad; i++) {
        if (s->fill)
            buffer_add_text(r, b, s->fill);
        else
            buffer_adds(r, b, " ");
    }
}

/* Puts a comma before every third digit from the right of the integer part. */
static void add_commas(char *text, size_t cap)
{
    size_t whole = strspn(text, "0123456789");
    size_t len = strlen(text);

    for (size_t at = whole; at > 3; at -= 3) {
        if (len + 2 > cap)
            return;
        memmove(text + at - 2, text + at - 3, len - at + 4);
        text[at - 3] = ',';
        len++;
    }
}

static void add_number(struct render *r, struct buffer *b, const struct spec *s, bool negative,
                       const char *base, char *digits, size_t cap)
{
    char prefix[8];

    if (s->comma)
        add_commas(digits, cap);
    snprintf(prefix, sizeof prefix, "%s%s",
             negative         ? "-"
             : s->sign == '+' ? "+"
             : s->sign == ' ' ? " "
                              : "",
             base);
    add_padded(r, b, s, prefix, text_borrow(r, digits, strlen(digits), TEMPLATE_ORIGIN_TRUSTED),
               '>');
}

static void add_int(struct render *r, struct buffer *b, const struct spec *s, __int128 i)
{
    unsigned __int128 u = i < 0 ? -(unsigned __int128)i : (unsigned __int128)i;
    char text[256];
    char *end = text + 200;
    const char *prefix = "";
    char *p;

    switch (s->type) {
    case 'x':
    case 'X':
        p = digits_of(u, 16, s->type == 'X', end);
        prefix = s->alternate ? (s->type == 'X' ? "0X" : "0x") : "";
        break;
    case 'o':
        p = digits_of(u, 8, false, end);
        prefix = s->alternate ? "0o" : "";
        break;
    case 'b':
        p = digits_of(u, 2, false, end);
        prefix = s->alternate ? "0b" : "";
        break;
    default: p = digits_of(u, 10, false, end); break;
    }
    memmove(text, p, strlen(p) + 1);
    add_number(r, b, s, i < 0, prefix, text, sizeof text);
}

static void add_float(struct render *r, struct buffer *b, const struct spec *s, double d)
{
    char form[8] = "%.*f";
    char text[600];
    char shown[48];
    double size = fabs(d);
    int precision = s->precision < 0 ? 6 : (int)MIN(s->precision, MAX_PRECISION);

    form[3] = s->type == 0 ? 'g' : s->type == '%' || s->type == 'F' ? 'f' : s->type;
    if (s->type == '%') {
        size *= 100;
        form[4] = form[5] = '%';
    }
    if (!isfinite(d))
        snprintf(text, sizeof text, "%s", isnan(d) ? "nan" : "inf");
    else if (s->type == 0 && s->precision < 0)
        snprintf(text, sizeof text, "%s", show_float(size, shown));
    else
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(text, sizeof text, form, precision, size); /* one of five letters, then "%" */
#pragma GCC diagnostic pop
    add_number(r, b, s, signbit(d) && !isnan(d), "", text, sizeof text);
}

static void add_string(struct render *r, struct buffer *b, const struct spec *s,
                       const struct text *t)
{
    if (s->precision >= 0)
        t = text_sub(r, t, 0, text_offset(r, t, (size_t)s->precision));
    add_padded(r, b, s, "", t, '<');
}

static const struct text *repr_text(struct render *r, struct value v)
{
    struct buffer b = {0};

    show_add_repr(r, &b, v);
    return buffer_text(r, &b);
}

/* -- "%" ----------------------------------------------------------------- */

struct percent {
    struct value args;
    size_t next;
    bool by_name;
};

static struct value percent_next(struct render *r, struct percent *p)
{
    if (p->args.type == VALUE_TUPLE) {
        if (p->next < p->args.list->n)
            return p->args.list->items[p->next++];
    } else if (p->next++ == 0) {
        return p->args;
    }
    render_fail(r, "not enough arguments for format string");
}

/* Reads digits at *at, or "*". */
static int64_t read_count(struct render *r, const struct text *f, size_t *at, struct percent *p)
{
    int64_t n = 0;

    if (p && *at < f->len && f->p[*at] == '*') {
        ++*at;
        n = value_to_index(r, percent_next(r, p), "*");
    } else {
        while (*at < f->len && isdigit((unsigned char)f->p[*at]) && n <= MAX_WIDTH)
            n = n * 10 + (f->p[(*at)++] - '0');
    }
    if (n < 0 || n > MAX_WIDTH)
        render_fail(r, "a width in a format string is larger than %d", MAX_WIDTH);
    return n;
}

static void percent_flags(struct render *r, const struct text *f, size_t *at, struct percent *p,
                          struct spec *s)
{
    for (; *at < f->len && strchr("-+ #0", f->p[*at]); ++*at) {
        switch (f->p[*at]) {
        case '-': s->align = '<'; break;
        case '+': s->sign = '+'; break;
        case ' ':
            if (!s->sign)
                s->sign = ' ';
            break;
        case '#': s->alternate = true; break;
        default: s->zero = true; break;
        }
    }
    s->width = read_count(r, f, at, p);
    if (*at < f->len && f->p[*at] == '.') {
        ++*at;
        s->precision = read_count(r, f, at, p);
    }
    while (*at < f->len && strchr("hlL", f->p[*at]))
        ++*at;
}

static void percent_value(struct render *r, struct buffer *b, const struct spec *s, struct value v)
{
    char utf8[4];
    size_t n;

    switch (s->type) {
    case 's': {
        struct spec right = *s;

        right.zero = false;
        if (!right.align)
            right.align = '>';
        add_string(r, b, &right, show_str(r, v));
        return;
    }
    case 'r':
    case 'a': add_string(r, b, s, repr_text(r, v)); return;
    case 'c':
        if (v.type == VALUE_STRING)
            add_string(r, b, s, v.text);
        else {
            n = utf8_encode((unsigned)value_to_index(r, v, "%c"), utf8);
            add_string(r, b, s, text_borrow(r, utf8, n, TEMPLATE_ORIGIN_TRUSTED));
        }
        return;
    default: break;
    }
    value_known(r, v);
    if (!value_is_number(v))
        render_fail(r, "%%%c format: a number is required, not %s", s->type, value_type_name(v));
    if (strchr("diuxXo", s->type)) {
        if (v.type == VALUE_FLOAT && !(fabs(v.real) < 0x1p120))
            render_fail(r, "cannot show a float of this size as an integer");
        add_int(r, b, s,
                v.type == VALUE_FLOAT  ? (__int128)v.real
                : v.type == VALUE_BOOL ? v.boolean
                                       : v.integer);
    } else {
        add_float(r, b, s, value_as_double(v));
    }
}

const struct text *show_percent(struct render *r, const struct text *f, struct value args)
{
    struct percent p = {.args = args};
    struct buffer b = {0};

    for (size_t at = 0; at < f->len;) {
        const char *mark = memchr(f->p + at, '%', f->len - at);
        size_t to = mark ? (size_t)(mark - f->p) : f->len;
        struct spec s = {.precision = -1};
        struct value v;

        buffer_add_sub(r, &b, f, at, to - at);
        if (!mark)
            break;
        at = to + 1;
        v = value_none();
        if (at < f->len && f->p[at] == '(') {
            const char *end = memchr(f->p + at, ')', f->len - at);
            size_t stop = end ? (size_t)(end - f->p) : 0;

            if (!end || args.type != VALUE_DICT)
                render_fail(r, "format requires a mapping");
            v = eval_item(r, args, value_text(text_sub(r, f, at + 1, stop - at - 1)));
            p.by_name = true;
            at = stop + 1;
        }
        percent_flags(r, f, &at, &p, &s);
        if (at >= f->len)
            render_fail(r, "incomplete format");
        s.type = f->p[at++];
        if (s.type == '%') {
            buffer_add_sub(r, &b, f, at - 1, 1);
            continue;
        }
        if (!s.type || !strchr("sracdiuxXofFeEgG", s.type))
            render_fail(r, "unsupported format character '%c'", s.type);
        percent_value(r, &b, &s, p.by_name ? v : percent_next(r, &p));
    }
    if (args.type == VALUE_TUPLE ? p.next < args.list->n
                                 : !p.by_name && p.next == 0 && args.type != VALUE_DICT)
        render_fail(r, "not all arguments converted during string formatting");
    return buffer_text(r, &b);
}

/* -- str.format ---------------------------------------------------------- */

static bool is_align(char c)
{
    return c == '<' || c == '>' || c == '^' || c == '=';
}

static struct spec read_spec(struct render *r, const struct text *f)
{
    struct spec s = {.precision = -1};
    size_t at = 0;

    if (f->len) {
        text_next(f, &at);
        if (at < f->len && is_align(f->p[at])) {
            s.fill = text_sub(r, f, 0, at);
            s.align = f->p[at++];
        } else {
            at = 0;
            if (is_align(f->p[0]))
                s.align = f->p[at++];
        }
    }
    if (at < f->len && strchr("+- ", f->p[at])) {
        s.sign = f->p[at] == '-' ? 0 : f->p[at];
        at++;
    }
    if (at < f->len && f->p[at] == '#') {
        s.alternate = true;
        at++;
    }
    if (at < f->len && f->p[at] == '0') {
        s.zero = true;
        at++;
    }
    s.width = read_count(r, f, &at, NULL);
    if (at < f->len && (f->p[at] == ',' || f->p[at] == '_')) {
        s.comma = true;
        at++;
    }
    if (at < f->len && f->p[at] == '.') {
        at++;
        s.precision = read_count(r, f, &at, NULL);
    }
    if (at < f->len)
        s.type = f->p[at++];
    if (at < f->len || (s.type && !strchr("sdxXobfFeEgG%n", s.type)))
        render_fail(r, "Invalid format specifier '%s'", text_cstr(r, f));
    return s;
}

static void add_by_spec(struct render *r, struct buffer *b, struct value v, const struct text *f)
{
    struct spec s;

    if (f->len == 0) {
        show_add_str(r, b, v);
        return;
    }
    s = read_spec(r, f);
    if (v.type == VALUE_STRING && (s.type == 0 || s.type == 's'))
        add_string(r, b, &s, v.text);
    else if ((v.type == VALUE_INT || v.type == VALUE_BOOL) &&
             (s.type == 0 || strchr("dxXobn", s.type)))
        add_int(r, b, &s, v.type == VALUE_BOOL ? v.boolean : v.integer);
    else if (value_is_number(v) && (s.type == 0 || strchr("fFeEgG%", s.type)))
        add_float(r, b, &s, value_as_double(v));
    else
        render_fail(r, "unsupported format string '%s' for a value of type '%s'", text_cstr(r, f),
                    value_type_name(v));
}

/* field: "", "0", "name", then ".attr" and "[item]". */
static struct value find_field(struct render *r, const struct args *args, const struct text *field,
                               size_t *next)
{
    size_t at = strcspn(text_cstr(r, field), ".[");
    const char *name = text_cstr(r, text_sub(r, field, 0, at));
    const struct value *found;
    struct value v;

    if (at == 0)
        found = args_get(args, (*next)++, "");
    else if (isdigit((unsigned char)name[0]))
        found = args_get(args, (size_t)strtoul(name, NULL, 10), "");
    else
        found = args_get(args, SIZE_MAX, name);
    if (!found)
        render_fail(r, "str.format has no value for the field '%s'", name);
    v = *found;
    while (at < field->len) {
        bool item = field->p[at] == '[';
        size_t from = at + 1;
        const struct text *key;

        for (at = from;
             at < field->len && (item ? field->p[at] != ']' : !strchr(".[", field->p[at]));)
            at++;
        key = text_sub(r, field, from, at - from);
        if (item && key->len && isdigit((unsigned char)key->p[0]))
            v = eval_item(r, v, value_int(strtol(text_cstr(r, key), NULL, 10)));
        else if (item)
            v = eval_item(r, v, value_text(key));
        else
            v = eval_attr(r, v, text_cstr(r, key), key->len);
        if (item && at < field->len)
            at++;
    }
    return v;
}

static void add_field(struct render *r, struct buffer *b, const struct args *args,
                      const struct text *inside, size_t *next)
{
    size_t end = strcspn(text_cstr(r, inside), "!:");
    struct value v = find_field(r, args, text_sub(r, inside, 0, end), next);

    if (end < inside->len && inside->p[end] == '!') {
        char how = end + 1 < inside->len ? inside->p[end + 1] : 0;

        if (how != 'r' && how != 's' && how != 'a')
            render_fail(r, "str.format knows no conversion '%c'", how);
        v = value_text(how == 's' ? show_str(r, v) : repr_text(r, v));
        end += 2;
    }
    if (end < inside->len && inside->p[end] != ':')
        render_fail(r, "str.format expects ':' after the conversion");
    end = MIN(end + 1, inside->len);
    add_by_spec(r, b, v, text_sub(r, inside, end, inside->len - end));
}

const struct text *show_braces(struct render *r, const struct text *f, const struct args *args)
{
    struct buffer b = {0};
    size_t next = 0;

    for (size_t at = 0; at < f->len;) {
        char c = f->p[at];
        const char *end;
        size_t stop;

        if (c != '{' && c != '}') {
            buffer_add_sub(r, &b, f, at++, 1);
            continue;
        }
        if (at + 1 < f->len && f->p[at + 1] == c) {
            buffer_add_sub(r, &b, f, at, 1);
            at += 2;
            continue;
        }
        end = c == '{' ? memchr(f->p + at, '}', f->len - at) : NULL;
        if (!end)
            render_fail(r, "Single '%c' encountered in format string", c);
        stop = (size_t)(end - f->p);
        add_field(r, &b, args, text_sub(r, f, at + 1, stop - at - 1), &next);
        at = stop + 1;
    }
    return buffer_text(r, &b);
}
