/* Filters over lists and dicts.  To add one: a function, and a row at the end. */
#include <string.h>

#include "common/alloc.h"
#include "daemon/template/eval.h"
#include "daemon/template/show.h"
#include "daemon/template/sort.h"
#include "daemon/template/text.h"

static struct value filter_default(struct render *r, struct value v, const struct args *a)
{
    const struct value *otherwise = args_get(a, 0, "default_value");
    bool also_false = args_bool(r, a, 1, "boolean", false);

    args_check(r, a, "default", 2, "default_value boolean");
    if (v.type == VALUE_UNDEFINED || (also_false && !value_truth(r, v)))
        return otherwise ? *otherwise : value_cstr(r, "");
    return v;
}

static struct value filter_length(struct render *r, struct value v, const struct args *a)
{
    int64_t n = value_length(r, v);

    (void)a;
    if (n < 0)
        render_fail(r, "object of type '%s' has no len()", value_type_name(v));
    return value_int(n);
}

static struct value list_of(struct render *r, struct items items)
{
    struct list *l = list_new(r, items.n);

    for (size_t i = 0; i < items.n; i++)
        list_add(r, l, items.p[i]);
    return value_list(l);
}

static struct value filter_list(struct render *r, struct value v, const struct args *a)
{
    (void)a;
    return list_of(r, value_items(r, v));
}

static struct value filter_first(struct render *r, struct value v, const struct args *a)
{
    struct items items = value_items(r, v);

    (void)a;
    return items.n ? items.p[0] : value_undefined_name(r, "the first of no items");
}

static struct value filter_last(struct render *r, struct value v, const struct args *a)
{
    struct items items = value_items(r, v);

    (void)a;
    return items.n ? items.p[items.n - 1] : value_undefined_name(r, "the last of no items");
}

static struct value filter_join(struct render *r, struct value v, const struct args *a)
{
    struct items items = value_items(r, v);
    const struct value *with = args_get(a, 0, "d");
    struct attr_path path = attr_path_of(r, args_get(a, 1, "attribute"));
    const struct text *between = with ? show_str(r, *with) : value_cstr(r, "").text;
    struct buffer b = {0};

    args_check(r, a, "join", 2, "d attribute");
    for (size_t i = 0; i < items.n; i++) {
        if (i)
            buffer_add_text(r, &b, between);
        show_add_str(r, &b, attr_path_get(r, &path, items.p[i]));
    }
    return value_text(buffer_text(r, &b));
}

static struct value filter_reverse(struct render *r, struct value v, const struct args *a)
{
    struct items items = value_items(r, v);
    struct list *l = list_new(r, items.n);
    struct buffer b = {0};

    (void)a;
    for (size_t i = items.n; i-- > 0;)
        list_add(r, l, items.p[i]);
    if (v.type != VALUE_STRING)
        return value_list(l);
    for (size_t i = 0; i < l->n; i++)
        buffer_add_text(r, &b, l->items[i].text);
    return value_text(buffer_text(r, &b));
}

/* -- map, select, reject ------------------------------------------------- */

/* Arguments from the i-th on: those of the filter or test that is applied. */
static struct args args_after(const struct args *a, size_t i)
{
    struct args rest = *a;

    rest.pos = a->n > i ? a->pos + i : NULL;
    rest.n = a->n > i ? a->n - i : 0;
    return rest;
}

/* map, select and their kin take whatever is false, also none, as no items. */
static struct items items_or_none(struct render *r, struct value v)
{
    return value_truth(r, v) ? value_items(r, v) : (struct items){0};
}

static struct value filter_map(struct render *r, struct value v, const struct args *a)
{
    struct items items = items_or_none(r, v);
    struct list *l = list_new(r, items.n);
    const struct value *attribute = args_get(a, SIZE_MAX, "attribute");
    const struct value *otherwise = args_get(a, SIZE_MAX, "default");
    struct attr_path path = attr_path_of(r, attribute);
    struct args rest = args_after(a, 1);
    const char *name = "";

    if (attribute)
        args_check(r, a, "map", 0, "attribute default");
    else
        name = text_cstr(r, show_str(r, args_need(r, a, 0, "filter", "map")));
    for (size_t i = 0; i < items.n; i++) {
        struct value mapped = attribute ? attr_path_get(r, &path, items.p[i])
                                        : filter_apply(r, name, items.p[i], &rest);

        if (attribute && otherwise && mapped.type == VALUE_UNDEFINED)
            mapped = *otherwise;
        list_add(r, l, mapped);
    }
    return value_list(l);
}

/* attr: the first argument names an attribute; what is tested is its value. */
static struct value select_items(struct render *r, struct value v, const struct args *a, bool attr,
                                 bool wanted)
{
    struct items items = items_or_none(r, v);
    struct list *l = list_new(r, 0);
    struct attr_path path = {0};
    struct args rest = args_after(a, attr ? 2 : 1);
    const struct value *test = args_get(a, attr ? 1 : 0, "");
    const char *name = test ? text_cstr(r, show_str(r, *test)) : NULL;

    if (attr) {
        struct value first = args_need(r, a, 0, "attribute", "selectattr");

        path = attr_path_of(r, &first);
    }
    for (size_t i = 0; i < items.n; i++) {
        struct value tested = attr_path_get(r, &path, items.p[i]);
        bool is = name ? test_apply(r, name, tested, &rest) : value_truth(r, tested);

        if (is == wanted)
            list_add(r, l, items.p[i]);
    }
    return value_list(l);
}

static struct value filter_select(struct render *r, struct value v, const struct args *a)
{
    return select_items(r, v, a, false, true);
}

static struct value filter_reject(struct render *r, struct value v, const struct args *a)
{
    return select_items(r, v, a, false, false);
}

static struct value filter_selectattr(struct render *r, struct value v, const struct args *a)
{
    return select_items(r, v, a, true, true);
}

static struct value filter_rejectattr(struct render *r, struct value v, const struct args *a)
{
    return select_items(r, v, a, true, false);
}

static struct value filter_attr(struct render *r, struct value v, const struct args *a)
{
    const struct text *name = show_str(r, args_need(r, a, 0, "name", "attr"));

    if (v.type == VALUE_DICT && !method_find(r, v, text_cstr(r, name)))
        return value_undefined_key(r, v, value_text(name));
    return eval_attr(r, v, text_cstr(r, name), name->len);
}

/* -- sums and orders ----------------------------------------------------- */

static struct value filter_sum(struct render *r, struct value v, const struct args *a)
{
    struct items items = value_items(r, v);
    struct attr_path path = attr_path_of(r, args_get(a, 0, "attribute"));
    const struct value *start = args_get(a, 1, "start");
    struct value sum = start ? *start : value_int(0);

    args_check(r, a, "sum", 2, "attribute start");
    for (size_t i = 0; i < items.n; i++)
        sum = eval_binary(r, NODE_ADD, sum, attr_path_get(r, &path, items.p[i]));
    return sum;
}

static struct value extreme(struct render *r, struct value v, const struct args *a, int sign)
{
    struct items items = value_items(r, v);
    bool fold = !args_bool(r, a, 0, "case_sensitive", false);
    struct attr_path path = attr_path_of(r, args_get(a, 1, "attribute"));
    struct value best, best_key;

    args_check(r, a, sign < 0 ? "min" : "max", 2, "case_sensitive attribute");
    if (items.n == 0)
        return value_undefined_name(r, "the extreme of no items");
    best = items.p[0];
    best_key = sort_key(r, attr_path_get(r, &path, best), fold);
    for (size_t i = 1; i < items.n; i++) {
        struct value key = sort_key(r, attr_path_get(r, &path, items.p[i]), fold);

        if (value_compare(r, key, best_key, sign < 0 ? "<" : ">") * sign > 0) {
            best = items.p[i];
            best_key = key;
        }
    }
    return best;
}

static struct value filter_min(struct render *r, struct value v, const struct args *a)
{
    return extreme(r, v, a, -1);
}

static struct value filter_max(struct render *r, struct value v, const struct args *a)
{
    return extreme(r, v, a, 1);
}

static struct value filter_sort(struct render *r, struct value v, const struct args *a)
{
    struct items items = value_items(r, v);
    bool reverse = args_bool(r, a, 0, "reverse", false);
    bool fold = !args_bool(r, a, 1, "case_sensitive", false);
    const struct value *attribute = args_get(a, 2, "attribute");
    struct value *keys = arena_array(&r->arena, items.n, sizeof *keys);

    args_check(r, a, "sort", 3, "reverse case_sensitive attribute");
    for (size_t i = 0; i < items.n; i++)
        keys[i] = sort_keys_of(r, attribute, items.p[i], fold);
    return value_list(sort_by_keys(r, items, keys, reverse));
}

static struct value filter_dictsort(struct render *r, struct value v, const struct args *a)
{
    bool fold = !args_bool(r, a, 0, "case_sensitive", false);
    const struct text *by = args_text(r, a, 1, "by");
    bool reverse = args_bool(r, a, 2, "reverse", false);
    struct value *keys;
    struct list *pairs;

    args_check(r, a, "dictsort", 3, "case_sensitive by reverse");
    if (by && !text_is(by, "key") && !text_is(by, "value"))
        render_fail(r, "you can only sort by either 'key' or 'value'");
    if (value_known(r, v).type != VALUE_DICT)
        render_fail(r, "dictsort needs a mapping, not '%s'", value_type_name(v));
    pairs = dict_pairs(r, v.dict);
    keys = arena_array(&r->arena, pairs->n, sizeof *keys);
    for (size_t i = 0; i < pairs->n; i++)
        keys[i] = sort_key(
            r, by && text_is(by, "value") ? v.dict->items[i].value : v.dict->items[i].key, fold);
    return value_list(sort_by_keys(r, (struct items){pairs->items, pairs->n}, keys, reverse));
}

static struct value filter_items(struct render *r, struct value v, const struct args *a)
{
    (void)a;
    if (v.type == VALUE_UNDEFINED)
        return value_list(list_new(r, 0));
    if (v.type != VALUE_DICT)
        render_fail(r, "Can only get item pairs from a mapping.");
    return value_list(dict_pairs(r, v.dict));
}

static struct value filter_unique(struct render *r, struct value v, const struct args *a)
{
    struct items items = value_items(r, v);
    bool fold = !args_bool(r, a, 0, "case_sensitive", false);
    struct attr_path path = attr_path_of(r, args_get(a, 1, "attribute"));
    struct dict *seen = dict_new(r);
    struct list *l = list_new(r, 0);

    args_check(r, a, "unique", 2, "case_sensitive attribute");
    for (size_t i = 0; i < items.n; i++) {
        struct value key = sort_key(r, attr_path_get(r, &path, items.p[i]), fold);

        if (dict_find(r, seen, key))
            continue;
        dict_put(r, seen, key, value_none());
        list_add(r, l, items.p[i]);
    }
    return value_list(l);
}

static struct value filter_groupby(struct render *r, struct value v, const struct args *a)
{
    struct items items = value_items(r, v);
    struct value attribute = args_need(r, a, 0, "attribute", "groupby");
    const struct value *otherwise = args_get(a, 1, "default");
    bool fold = !args_bool(r, a, 2, "case_sensitive", false);
    struct attr_path path = attr_path_of(r, &attribute);
    struct value *keys = arena_array(&r->arena, items.n, sizeof *keys);
    struct list *groups = list_new(r, 0);
    struct list *sorted, *group = NULL;
    struct value last = value_none();

    args_check(r, a, "groupby", 3, "attribute default case_sensitive");
    for (size_t i = 0; i < items.n; i++) {
        struct value key = attr_path_get(r, &path, items.p[i]);

        if (key.type == VALUE_UNDEFINED && otherwise)
            key = *otherwise;
        keys[i] = sort_key(r, key, fold);
    }
    sorted = sort_by_keys(r, items, keys, false);
    for (size_t i = 0; i < sorted->n; i++) {
        struct value key = attr_path_get(r, &path, sorted->items[i]);

        if (key.type == VALUE_UNDEFINED && otherwise)
            key = *otherwise;
        if (!group || !value_equal(r, sort_key(r, key, fold), last)) {
            last = sort_key(r, key, fold);
            group = list_new(r, 0);
            list_add(r, groups, value_pair(r, key, value_list(group)));
        }
        list_add(r, group, sorted->items[i]);
    }
    return value_list(groups);
}

/* -- cutting ------------------------------------------------------------- */

static struct value filter_batch(struct render *r, struct value v, const struct args *a)
{
    struct items items = value_items(r, v);
    int64_t size = value_to_index(r, args_need(r, a, 0, "linecount", "batch"), "batch");
    const struct value *fill = args_get(a, 1, "fill_with");
    struct list *rows = list_new(r, 0);
    struct list *row = NULL;

    args_check(r, a, "batch", 2, "linecount fill_with");
    if (size < 1)
        render_fail(r, "batch needs a size of at least 1");
    for (size_t i = 0; i < items.n; i++) {
        if (!row || (int64_t)row->n == size) {
            row = list_new(r, 0);
            list_add(r, rows, value_list(row));
        }
        list_add(r, row, items.p[i]);
    }
    while (row && fill && fill->type != VALUE_NONE && (int64_t)row->n < size)
        list_add(r, row, *fill);
    return value_list(rows);
}

static struct value filter_slice(struct render *r, struct value v, const struct args *a)
{
    struct items items = value_items(r, v);
    int64_t n = value_to_index(r, args_need(r, a, 0, "slices", "slice"), "slice");
    const struct value *fill = args_get(a, 1, "fill_with");
    struct list *rows = list_new(r, 0);
    size_t each, longer, at = 0;

    args_check(r, a, "slice", 2, "slices fill_with");
    if (n < 1)
        render_fail(r, "slice needs at least one slice");
    each = items.n / (size_t)n;
    longer = items.n % (size_t)n;
    for (size_t i = 0; i < (size_t)n; i++) {
        struct list *row = list_new(r, 0);
        size_t count = each + (i < longer);

        while (count--)
            list_add(r, row, items.p[at++]);
        if (fill && fill->type != VALUE_NONE && i >= longer)
            list_add(r, row, *fill);
        list_add(r, rows, value_list(row));
    }
    return value_list(rows);
}

const struct filter filters_seq[] = {
    {"default", filter_default},
    {"d", filter_default},
    {"length", filter_length},
    {"count", filter_length},
    {"list", filter_list},
    {"first", filter_first},
    {"last", filter_last},
    {"join", filter_join},
    {"reverse", filter_reverse},
    {"map", filter_map},
    {"select", filter_select},
    {"reject", filter_reject},
    {"selectattr", filter_selectattr},
    {"rejectattr", filter_rejectattr},
    {"attr", filter_attr},
    {"sum", filter_sum},
    {"min", filter_min},
    {"max", filter_max},
    {"sort", filter_sort},
    {"dictsort", filter_dictsort},
    {"items", filter_items},
    {"unique", filter_unique},
    {"groupby", filter_groupby},
    {"batch", filter_batch},
    {"slice", filter_slice},
    {NULL, NULL},
};

filter_fn *filter_find(const char *name)
{
    const struct filter *const tables[] = {filters_text, filters_seq};

    for (size_t k = 0; k < ARRAY_LEN(tables); k++)
        for (const struct filter *f = tables[k]; f->name; f++)
            if (strcmp(f->name, name) == 0)
                return f->call;
    return NULL;
}

struct value filter_apply(struct render *r, const char *name, struct value v,
                          const struct args *args)
{
    filter_fn *filter = filter_find(name);
    struct value result;

    if (!filter)
        render_fail(r, "there is no filter named '%s'", name);
    render_work(r, 0);
    render_enter(r); /* map can name map */
    result = filter(r, v, args);
    render_leave(r);
    return result;
}
