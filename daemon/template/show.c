/* str(), repr() and JSON.  See show.h. */
#include "daemon/template/show.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "daemon/template/eval.h"

const char *show_int(__int128 i, char *buf)
{
    unsigned __int128 u = i < 0 ? -(unsigned __int128)i : (unsigned __int128)i;
    char *p = buf + 47;

    *p = '\0';
    do {
        *--p = (char)('0' + (int)(u % 10));
        u /= 10;
    } while (u);
    if (i < 0)
        *--p = '-';
    return p;
}

/* Digits and decimal exponent of the shortest "%.*e" that reads back as d. */
static int shortest(double d, char digits[20])
{
    char text[40];
    const char *exp;
    int n = 0;

    for (int precision = 0; precision < 17; precision++) {
        snprintf(text, sizeof text, "%.*e", precision, d);
        if (strtod(text, NULL) == d)
            break;
    }
    exp = strchr(text, 'e');
    for (const char *p = text; p < exp; p++)
        if (*p >= '0' && *p <= '9')
            digits[n++] = *p;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    digits[n] = '\0';
    return (int)strtol(exp + 1, NULL, 10);
}

const char *show_float(double d, char *buf)
{
    char digits[20];
    int exp, n;
    char *p = buf;

    if (isnan(d))
        return "nan";
    if (isinf(d))
        return d > 0 ? "inf" : "-inf";
    exp = shortest(fabs(d), digits);
    n = (int)strlen(digits);
    if (signbit(d))
        *p++ = '-';
    if (exp < -4 || exp >= 16) {
        p += sprintf(p, "%c%s%s", digits[0], n > 1 ? "." : "", digits + 1);
        sprintf(p, "e%c%02d", exp < 0 ? '-' : '+', abs(exp));
    } else if (exp < 0) {
        p += sprintf(p, "0.");
        for (int i = -1; i > exp; i--)
            *p++ = '0';
        memcpy(p, digits, (size_t)n + 1);
    } else if (n <= exp + 1) {
        p += sprintf(p, "%s", digits);
        for (int i = n; i <= exp; i++)
            *p++ = '0';
        memcpy(p, ".0", sizeof ".0");
    } else {
        sprintf(p, "%.*s.%s", exp + 1, digits, digits + exp + 1);
    }
    return buf;
}

/* Python's str.isprintable, which decides what repr() escapes. */
static bool is_printable(unsigned cp)
{
    switch (utf8proc_category((utf8proc_int32_t)cp)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return false;
    case UTF8PROC_CATEGORY_ZS: return cp == ' ';
    default: return true;
    }
}

static void add_escape(struct render *r, struct buffer *b, unsigned cp, enum template_origin o)
{
    char text[16];

    switch (cp) {
    case '\n': buffer_add(r, b, "\\n", 2, o); return;
    case '\r': buffer_add(r, b, "\\r", 2, o); return;
    case '\t': buffer_add(r, b, "\\t", 2, o); return;
    default: break;
    }
    snprintf(text, sizeof text, cp < 0x100 ? "\\x%02x" : cp < 0x10000 ? "\\u%04x" : "\\U%08x", cp);
    buffer_add(r, b, text, strlen(text), o);
}

static void add_quoted(struct render *r, struct buffer *b, const struct text *t)
{
    bool single = memchr(t->p, '\'', t->len) && !memchr(t->p, '"', t->len);
    char quote = single ? '"' : '\'';

    buffer_addc(r, b, quote, TEMPLATE_ORIGIN_TRUSTED);
    for (size_t at = 0; at < t->len;) {
        size_t from = at;
        unsigned cp = text_next(t, &at);
        enum template_origin o = text_origin_at(t, from);

        if (cp == (unsigned char)quote || cp == '\\')
            buffer_addc(r, b, '\\', o);
        if (cp < 0x20 || cp == 0x7F || (cp >= 0x80 && !is_printable(cp)))
            add_escape(r, b, cp, o);
        else
            buffer_add_sub(r, b, t, from, at - from);
    }
    buffer_addc(r, b, quote, TEMPLATE_ORIGIN_TRUSTED);
}

static void add_list(struct render *r, struct buffer *b, const struct list *l, const char *ends)
{
    buffer_addc(r, b, ends[0], TEMPLATE_ORIGIN_TRUSTED);
    for (size_t i = 0; i < l->n; i++) {
        if (i)
            buffer_adds(r, b, ", ");
        show_add_repr(r, b, l->items[i]);
    }
    if (ends[0] == '(' && l->n == 1)
        buffer_addc(r, b, ',', TEMPLATE_ORIGIN_TRUSTED);
    buffer_addc(r, b, ends[1], TEMPLATE_ORIGIN_TRUSTED);
}

static void add_dict(struct render *r, struct buffer *b, const struct dict *d)
{
    buffer_adds(r, b, "{");
    for (size_t i = 0; i < d->n; i++) {
        if (i)
            buffer_adds(r, b, ", ");
        show_add_repr(r, b, d->items[i].key);
        buffer_adds(r, b, ": ");
        show_add_repr(r, b, d->items[i].value);
    }
    buffer_adds(r, b, "}");
}

static void add_range(struct render *r, struct buffer *b, const struct range *range)
{
    char start[48], stop[48], step[48];
    __int128 end = range->start + (__int128)range->step * (__int128)range->n;

    buffer_adds(r, b, "range(");
    buffer_adds(r, b, show_int(range->start, start));
    buffer_adds(r, b, ", ");
    buffer_adds(r, b, show_int(end, stop));
    if (range->step != 1) {
        buffer_adds(r, b, ", ");
        buffer_adds(r, b, show_int(range->step, step));
    }
    buffer_adds(r, b, ")");
}

void show_add_repr(struct render *r, struct buffer *b, struct value v)
{
    char text[48];

    render_enter(r);
    switch (v.type) {
    case VALUE_UNDEFINED: buffer_adds(r, b, "Undefined"); break;
    case VALUE_NONE: buffer_adds(r, b, "None"); break;
    case VALUE_BOOL: buffer_adds(r, b, v.boolean ? "True" : "False"); break;
    case VALUE_INT: buffer_adds(r, b, show_int(v.integer, text)); break;
    case VALUE_FLOAT: buffer_adds(r, b, show_float(v.real, text)); break;
    case VALUE_STRING: add_quoted(r, b, v.text); break;
    case VALUE_LIST: add_list(r, b, v.list, "[]"); break;
    case VALUE_TUPLE: add_list(r, b, v.list, "()"); break;
    case VALUE_RANGE: add_range(r, b, v.range); break;
    case VALUE_DICT: add_dict(r, b, v.dict); break;
    case VALUE_NAMESPACE:
        buffer_adds(r, b, "<Namespace ");
        add_dict(r, b, v.dict);
        buffer_adds(r, b, ">");
        break;
    default:
        buffer_adds(r, b, "<");
        buffer_adds(r, b, value_type_name(v));
        buffer_adds(r, b, ">");
    }
    render_leave(r);
}

void show_add_str(struct render *r, struct buffer *b, struct value v)
{
    if (v.type == VALUE_STRING)
        buffer_add_text(r, b, v.text);
    else if (v.type != VALUE_UNDEFINED)
        show_add_repr(r, b, v);
}

const struct text *show_str(struct render *r, struct value v)
{
    struct buffer b = {0};

    if (v.type == VALUE_STRING)
        return v.text;
    show_add_str(r, &b, v);
    return buffer_text(r, &b);
}

/* -- JSON ---------------------------------------------------------------- */

static void json_escape(unsigned cp, char text[16])
{
    static const char from[] = "\"\\\n\r\t\b\f";
    static const char to[] = "\"\\nrtbf";
    const char *letter = cp && cp < 0x80 ? strchr(from, (int)cp) : NULL;

    if (letter)
        snprintf(text, 16, "\\%c", to[letter - from]);
    else if (cp < 0x10000)
        snprintf(text, 16, "\\u%04x", cp);
    else /* as two UTF-16 units */
        snprintf(text, 16, "\\u%04x\\u%04x", 0xD7C0 + (cp >> 10), 0xDC00 + (cp & 0x3FF));
}

static void add_json_string(struct render *r, struct buffer *b, const struct text *t, bool ascii)
{
    size_t plain = 0;
    char text[16];

    buffer_adds(r, b, "\"");
    for (size_t at = 0; at < t->len;) {
        size_t from = at;
        unsigned cp = text_next(t, &at);

        if (cp >= 0x20 && cp != '"' && cp != '\\' && (cp < 0x80 || !ascii))
            continue;
        buffer_add_sub(r, b, t, plain, from - plain);
        json_escape(cp, text);
        buffer_add(r, b, text, strlen(text), text_origin_at(t, from));
        plain = at;
    }
    buffer_add_sub(r, b, t, plain, t->len - plain);
    buffer_adds(r, b, "\"");
}

static void add_json_key(struct render *r, struct buffer *b, struct value key, bool ascii)
{
    char text[48];

    switch (key.type) {
    case VALUE_STRING: add_json_string(r, b, key.text, ascii); return;
    case VALUE_BOOL: buffer_adds(r, b, key.boolean ? "\"true\"" : "\"false\""); return;
    case VALUE_NONE: buffer_adds(r, b, "\"null\""); return;
    case VALUE_INT:
    case VALUE_FLOAT:
        buffer_adds(r, b, "\"");
        buffer_adds(
            r, b, key.type == VALUE_INT ? show_int(key.integer, text) : show_float(key.real, text));
        buffer_adds(r, b, "\"");
        return;
    default:
        render_fail(r, "keys must be str, int, float, bool or None, not %s", value_type_name(key));
    }
}

static void json_break(struct render *r, struct buffer *b, const struct show_json *how, int deep)
{
    if (how->indent < 0)
        return;
    buffer_adds(r, b, "\n");
    buffer_fill(r, b, ' ', (size_t)how->indent * (size_t)deep);
}

static struct dict_item *sorted_items(struct render *r, const struct dict *d)
{
    struct dict_item *items = arena_grow(&r->arena, d->items, d->n, d->n, sizeof *items);

    /* Insertion: few keys, and every comparison is counted. */
    for (size_t i = 1; i < d->n; i++)
        for (size_t k = i; k > 0 && value_compare(r, items[k].key, items[k - 1].key, "<") < 0;
             k--) {
            struct dict_item swap = items[k];

            items[k] = items[k - 1];
            items[k - 1] = swap;
        }
    return items;
}

static void add_json(struct render *r, struct buffer *b, struct value v,
                     const struct show_json *how, int deep);

static void add_json_dict(struct render *r, struct buffer *b, const struct dict *d,
                          const struct show_json *how, int deep)
{
    const struct dict_item *items = how->sort_keys ? sorted_items(r, d) : d->items;

    buffer_adds(r, b, "{");
    for (size_t i = 0; i < d->n; i++) {
        if (i)
            buffer_adds(r, b, how->item_separator);
        json_break(r, b, how, deep + 1);
        add_json_key(r, b, items[i].key, how->ascii);
        buffer_adds(r, b, how->key_separator);
        add_json(r, b, items[i].value, how, deep + 1);
    }
    if (d->n)
        json_break(r, b, how, deep);
    buffer_adds(r, b, "}");
}

static void add_json_list(struct render *r, struct buffer *b, const struct list *l,
                          const struct show_json *how, int deep)
{
    buffer_adds(r, b, "[");
    for (size_t i = 0; i < l->n; i++) {
        if (i)
            buffer_adds(r, b, how->item_separator);
        json_break(r, b, how, deep + 1);
        add_json(r, b, l->items[i], how, deep + 1);
    }
    if (l->n)
        json_break(r, b, how, deep);
    buffer_adds(r, b, "]");
}

static void add_json(struct render *r, struct buffer *b, struct value v,
                     const struct show_json *how, int deep)
{
    char text[48];

    render_enter(r);
    switch (v.type) {
    case VALUE_NONE: buffer_adds(r, b, "null"); break;
    case VALUE_BOOL: buffer_adds(r, b, v.boolean ? "true" : "false"); break;
    case VALUE_INT: buffer_adds(r, b, show_int(v.integer, text)); break;
    case VALUE_FLOAT:
        if (isfinite(v.real))
            buffer_adds(r, b, show_float(v.real, text));
        else
            buffer_adds(r, b, isnan(v.real) ? "NaN" : v.real > 0 ? "Infinity" : "-Infinity");
        break;
    case VALUE_STRING: add_json_string(r, b, v.text, how->ascii); break;
    case VALUE_LIST:
    case VALUE_TUPLE: add_json_list(r, b, v.list, how, deep); break;
    case VALUE_DICT: add_json_dict(r, b, v.dict, how, deep); break;
    default: render_fail(r, "Object of type %s is not JSON serializable", value_type_name(v));
    }
    render_leave(r);
}

void show_add_json(struct render *r, struct buffer *b, struct value v, const struct show_json *how)
{
    add_json(r, b, v, how, 0);
}
