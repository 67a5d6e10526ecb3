/* Attribute paths and a stable merge sort.  See sort.h. */
#include "daemon/template/sort.h"

#include <string.h>

#include "common/alloc.h"
#include "daemon/template/text.h"

static struct value path_step(struct render *r, const struct text *t)
{
    int64_t i = 0;

    if (t->len == 0 || t->len > 9)
        return value_text(t);
    for (size_t at = 0; at < t->len; at++) {
        if (t->p[at] < '0' || t->p[at] > '9')
            return value_text(t);
        i = i * 10 + (t->p[at] - '0');
    }
    (void)r;
    return value_int(i);
}

static struct attr_path path_of_text(struct render *r, const struct text *t)
{
    const struct text *dot = value_cstr(r, ".").text;
    struct list *steps = list_new(r, 0);
    size_t from = 0;

    for (;;) {
        ptrdiff_t at = text_find(r, t, dot, from);
        size_t to = at < 0 ? t->len : (size_t)at;

        list_add(r, steps, path_step(r, text_sub(r, t, from, to - from)));
        if (at < 0)
            break;
        from = to + 1;
    }
    return (struct attr_path){steps->items, steps->n};
}

struct attr_path attr_path_of(struct render *r, const struct value *attribute)
{
    struct list *one;

    if (!attribute || attribute->type == VALUE_NONE)
        return (struct attr_path){0};
    if (attribute->type == VALUE_STRING)
        return path_of_text(r, attribute->text);
    if (attribute->type != VALUE_INT)
        render_fail(r, "an attribute must be a string or an integer, not '%s'",
                    value_type_name(*attribute));
    one = list_new(r, 1);
    list_add(r, one, *attribute);
    return (struct attr_path){one->items, 1};
}

struct value attr_path_get(struct render *r, const struct attr_path *path, struct value v)
{
    for (size_t i = 0; i < path->n; i++)
        v = eval_item(r, v, path->steps[i]);
    return v;
}

struct value sort_key(struct render *r, struct value v, bool fold)
{
    if (fold && v.type == VALUE_STRING)
        return value_text(text_case(r, v.text, TEXT_LOWER));
    return v;
}

struct value sort_keys_of(struct render *r, const struct value *attribute, struct value v,
                          bool fold)
{
    const struct text *comma = value_cstr(r, ",").text;
    struct attr_path path;
    struct list *keys;
    size_t from = 0;

    if (!attribute || attribute->type != VALUE_STRING ||
        text_find(r, attribute->text, comma, 0) < 0) {
        path = attr_path_of(r, attribute);
        return sort_key(r, attr_path_get(r, &path, v), fold);
    }
    keys = list_new(r, 0);
    for (;;) {
        ptrdiff_t at = text_find(r, attribute->text, comma, from);
        size_t to = at < 0 ? attribute->text->len : (size_t)at;

        path = path_of_text(r, text_sub(r, attribute->text, from, to - from));
        list_add(r, keys, sort_key(r, attr_path_get(r, &path, v), fold));
        if (at < 0)
            return value_list(keys);
        from = to + 1;
    }
}

/* Orders of items from..to, by their keys; sign -1: descending. */
struct sorting {
    struct render *r;
    const struct value *keys;
    size_t *order;
    size_t *scratch;
    int sign;
};

static void merge_sort(struct sorting *s, size_t from, size_t to)
{
    size_t middle = from + (to - from) / 2;
    size_t left = from, right = middle;

    if (to - from < 2)
        return;
    merge_sort(s, from, middle);
    merge_sort(s, middle, to);
    for (size_t at = from; at < to; at++) {
        bool take_left =
            left < middle && (right == to || value_compare(s->r, s->keys[s->order[left]],
                                                           s->keys[s->order[right]], "<") *
                                                     s->sign <=
                                                 0);

        s->scratch[at] = s->order[take_left ? left++ : right++];
    }
    memcpy(s->order + from, s->scratch + from, (to - from) * sizeof *s->order);
}

struct list *sort_by_keys(struct render *r, struct items items, const struct value *keys,
                          bool reverse)
{
    struct list *l = list_new(r, items.n);
    struct sorting s = {.r = r, .keys = keys, .sign = reverse ? -1 : 1};

    s.order = arena_array(&r->arena, items.n, sizeof *s.order);
    s.scratch = arena_array(&r->arena, items.n, sizeof *s.scratch);
    for (size_t i = 0; i < items.n; i++)
        s.order[i] = i;
    merge_sort(&s, 0, items.n);
    for (size_t i = 0; i < items.n; i++)
        list_add(r, l, items.p[s.order[i]]);
    return l;
}
