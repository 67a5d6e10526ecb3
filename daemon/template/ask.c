/* What a value is: truth, order, equality, length, membership.  See value.h. */
#include <string.h>

#include "daemon/template/eval.h"
#include "daemon/template/text.h"
#include "daemon/template/value.h"

const char *value_type_name(struct value v)
{
    static const char *const names[] = {
        [VALUE_UNDEFINED] = "Undefined", [VALUE_NONE] = "NoneType",
        [VALUE_BOOL] = "bool",           [VALUE_INT] = "int",
        [VALUE_FLOAT] = "float",         [VALUE_STRING] = "str",
        [VALUE_LIST] = "list",           [VALUE_TUPLE] = "tuple",
        [VALUE_RANGE] = "range",         [VALUE_DICT] = "dict",
        [VALUE_NAMESPACE] = "Namespace", [VALUE_LOOP] = "LoopContext",
        [VALUE_MACRO] = "Macro",         [VALUE_FUNCTION] = "function",
        [VALUE_METHOD] = "method",       [VALUE_CYCLER] = "Cycler",
        [VALUE_JOINER] = "Joiner",
    };

    return names[v.type];
}

bool value_is_number(struct value v)
{
    return v.type == VALUE_INT || v.type == VALUE_FLOAT || v.type == VALUE_BOOL;
}

bool value_is_list(struct value v)
{
    return v.type == VALUE_LIST || v.type == VALUE_TUPLE;
}

static __int128 as_int(struct value v)
{
    return v.type == VALUE_BOOL ? v.boolean : v.integer;
}

double value_as_double(struct value v)
{
    return v.type == VALUE_FLOAT ? v.real : (double)as_int(v);
}

bool value_truth(struct render *r, struct value v)
{
    switch (v.type) {
    case VALUE_UNDEFINED:
    case VALUE_NONE: return false;
    case VALUE_BOOL: return v.boolean;
    case VALUE_INT: return v.integer != 0;
    case VALUE_FLOAT: return v.real != 0;
    case VALUE_STRING:
    case VALUE_LIST:
    case VALUE_TUPLE:
    case VALUE_RANGE:
    case VALUE_DICT: return value_length(r, v) != 0;
    default: return true;
    }
}

static int64_t loop_length(const struct loop *loop)
{
    return (int64_t)loop->items.n;
}

int64_t value_length(struct render *r, struct value v)
{
    switch (v.type) {
    case VALUE_UNDEFINED: return 0;
    case VALUE_STRING: return (int64_t)text_length(r, v.text);
    case VALUE_LIST:
    case VALUE_TUPLE: return (int64_t)v.list->n;
    case VALUE_RANGE: return (int64_t)v.range->n;
    case VALUE_DICT: return (int64_t)v.dict->n;
    case VALUE_LOOP: return loop_length(v.loop);
    default: return -1;
    }
}

static bool lists_equal(struct render *r, const struct list *a, const struct list *b)
{
    if (a == b)
        return true;
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (!value_equal(r, a->items[i], b->items[i]))
            return false;
    return true;
}

static bool dicts_equal(struct render *r, const struct dict *a, const struct dict *b)
{
    if (a == b)
        return true;
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++) {
        const struct value *other = dict_find(r, b, a->items[i].key);

        if (!other || !value_equal(r, a->items[i].value, *other))
            return false;
    }
    return true;
}

static bool ranges_equal(const struct range *a, const struct range *b)
{
    return a->n == b->n &&
           (a->n == 0 || (a->start == b->start && (a->n == 1 || a->step == b->step)));
}

static bool numbers_equal(struct value a, struct value b)
{
    if (a.type == VALUE_FLOAT || b.type == VALUE_FLOAT)
        return value_as_double(a) == value_as_double(b);
    return as_int(a) == as_int(b);
}

bool value_equal(struct render *r, struct value a, struct value b)
{
    bool same = false;

    render_work(r, 1);
    if (value_is_number(a) && value_is_number(b))
        return numbers_equal(a, b);
    if (a.type != b.type)
        return false;
    render_enter(r);
    switch (a.type) {
    case VALUE_UNDEFINED:
    case VALUE_NONE: same = true; break;
    case VALUE_STRING:
        if (a.text->len == b.text->len)
            render_work(r, a.text->len);
        same = text_equal(a.text, b.text);
        break;
    case VALUE_LIST:
    case VALUE_TUPLE: same = lists_equal(r, a.list, b.list); break;
    case VALUE_RANGE: same = ranges_equal(a.range, b.range); break;
    case VALUE_DICT: same = dicts_equal(r, a.dict, b.dict); break;
    case VALUE_METHOD:
        same = a.method->call == b.method->call && value_equal(r, a.method->self, b.method->self);
        break;
    default: same = a.list == b.list; break; /* the same object */
    }
    render_leave(r);
    return same;
}

static int compare_lists(struct render *r, const struct list *a, const struct list *b,
                         const char *op)
{
    size_t i = 0;

    while (i < a->n && i < b->n && value_equal(r, a->items[i], b->items[i]))
        i++;
    if (i < a->n && i < b->n)
        return value_compare(r, a->items[i], b->items[i], op);
    return (i < a->n) - (i < b->n);
}

int value_compare(struct render *r, struct value a, struct value b, const char *op)
{
    int order;

    render_work(r, 1);
    value_known(r, a);
    value_known(r, b);
    if (value_is_number(a) && value_is_number(b)) {
        if (a.type == VALUE_FLOAT || b.type == VALUE_FLOAT) {
            double x = value_as_double(a), y = value_as_double(b);

            return (x > y) - (x < y);
        }
        return (as_int(a) > as_int(b)) - (as_int(a) < as_int(b));
    }
    if (a.type == VALUE_STRING && b.type == VALUE_STRING) {
        render_work(r, a.text->len < b.text->len ? a.text->len : b.text->len);
        return text_compare(a.text, b.text);
    }
    if (!value_is_list(a) || a.type != b.type)
        render_fail(r, "'%s' not supported between instances of '%s' and '%s'", op,
                    value_type_name(a), value_type_name(b));
    render_enter(r);
    order = compare_lists(r, a.list, b.list, op);
    render_leave(r);
    return order;
}

static bool range_contains(const struct range *range, struct value needle)
{
    __int128 i;

    if (needle.type != VALUE_INT && needle.type != VALUE_BOOL)
        return false;
    i = as_int(needle) - range->start;
    return i % range->step == 0 && i / range->step >= 0 && i / range->step < (__int128)range->n;
}

bool value_contains(struct render *r, struct value haystack, struct value needle)
{
    struct items items;

    switch (haystack.type) {
    case VALUE_STRING:
        value_known(r, needle);
        if (needle.type != VALUE_STRING)
            render_fail(r, "'in <string>' requires string as left operand, not %s",
                        value_type_name(needle));
        return text_find(r, haystack.text, needle.text, 0) >= 0;
    case VALUE_DICT: return dict_find(r, haystack.dict, needle) != NULL;
    case VALUE_RANGE: return range_contains(haystack.range, needle);
    case VALUE_UNDEFINED: return false;
    case VALUE_LIST:
    case VALUE_TUPLE: break;
    default: render_fail(r, "argument of type '%s' is not iterable", value_type_name(haystack));
    }
    items = value_items(r, haystack);
    for (size_t i = 0; i < items.n; i++)
        if (value_equal(r, items.p[i], needle))
            return true;
    return false;
}

static struct items items_of_text(struct render *r, const struct text *t)
{
    struct list *l = list_new(r, 0);

    for (size_t at = 0; at < t->len;) {
        size_t from = at;

        text_next(t, &at);
        list_add(r, l, value_text(text_sub(r, t, from, at - from)));
    }
    return (struct items){l->items, l->n};
}

struct items value_items(struct render *r, struct value v)
{
    struct list *l;

    switch (v.type) {
    case VALUE_UNDEFINED: return (struct items){0};
    case VALUE_STRING: return items_of_text(r, v.text);
    case VALUE_LIST:
    case VALUE_TUPLE: return (struct items){v.list->items, v.list->n};
    case VALUE_LOOP: return v.loop->items;
    case VALUE_RANGE:
        l = list_new(r, v.range->n);
        for (size_t i = 0; i < v.range->n; i++)
            list_add(r, l, range_at(v.range, i));
        return (struct items){l->items, l->n};
    case VALUE_DICT:
        l = list_new(r, v.dict->n);
        for (size_t i = 0; i < v.dict->n; i++)
            list_add(r, l, v.dict->items[i].key);
        return (struct items){l->items, l->n};
    default: render_fail(r, "'%s' object is not iterable", value_type_name(v));
    }
}
