/* Methods of lists, dicts and the small objects; the table of all methods.  See eval.h. */
#include <string.h>

#include "common/alloc.h"
#include "daemon/template/eval.h"
#include "daemon/template/methods.h"

/* -- list ---------------------------------------------------------------- */

static struct value list_append(struct render *r, struct value self, const struct args *a)
{
    list_add(r, self.list, args_need(r, a, 0, "object", "append()"));
    return value_none();
}

static struct value list_extend(struct render *r, struct value self, const struct args *a)
{
    struct items items = value_items(r, args_need(r, a, 0, "iterable", "extend()"));

    for (size_t i = 0; i < items.n; i++)
        list_add(r, self.list, items.p[i]);
    return value_none();
}

/* Index i as Python's insert and pop take it, 0..n. */
static size_t clamp_index(int64_t i, size_t n)
{
    if (i < 0)
        i += (int64_t)n;
    return i < 0 ? 0 : MIN((size_t)i, n);
}

/* The items move to a new array: whoever iterates over the old one sees it whole. */
static void copy_items(struct render *r, struct list *l)
{
    render_work(r, l->n);
    l->cap = MAX(l->n, (size_t)4);
    l->items = arena_grow(&r->arena, l->items, l->n, l->cap, sizeof *l->items);
}

static struct value list_insert(struct render *r, struct value self, const struct args *a)
{
    struct list *l = self.list;
    int64_t where = value_to_index(r, args_need(r, a, 0, "index", "insert()"), "insert()");
    struct value v = args_need(r, a, 1, "object", "insert()");
    size_t at = clamp_index(where, l->n);

    copy_items(r, l);
    list_add(r, l, v);
    memmove(l->items + at + 1, l->items + at, (l->n - 1 - at) * sizeof *l->items);
    l->items[at] = v;
    return value_none();
}

static struct value list_pop(struct render *r, struct value self, const struct args *a)
{
    struct list *l = self.list;
    int64_t i = args_int(r, a, 0, "index", -1);
    struct value v;

    if (i < 0)
        i += (int64_t)l->n;
    if (i < 0 || i >= (int64_t)l->n)
        render_fail(r, l->n ? "pop index out of range" : "pop from empty list");
    v = l->items[i];
    if ((size_t)i + 1 < l->n) {
        copy_items(r, l);
        memmove(l->items + i, l->items + i + 1, (l->n - (size_t)i - 1) * sizeof *l->items);
    }
    l->n--;
    return v;
}

static struct value list_index(struct render *r, struct value self, const struct args *a)
{
    struct value v = args_need(r, a, 0, "value", "index()");

    for (size_t i = 0; i < self.list->n; i++)
        if (value_equal(r, self.list->items[i], v))
            return value_int((int64_t)i);
    render_fail(r, "the value is not in the list");
}

static struct value list_count(struct render *r, struct value self, const struct args *a)
{
    struct value v = args_need(r, a, 0, "value", "count()");
    int64_t n = 0;

    for (size_t i = 0; i < self.list->n; i++)
        n += value_equal(r, self.list->items[i], v);
    return value_int(n);
}

static struct value list_copy(struct render *r, struct value self, const struct args *a)
{
    struct list *l = list_new(r, self.list->n);

    (void)a;
    for (size_t i = 0; i < self.list->n; i++)
        list_add(r, l, self.list->items[i]);
    return value_list(l);
}

static struct value list_reverse(struct render *r, struct value self, const struct args *a)
{
    struct list *l = self.list;

    (void)a;
    copy_items(r, l);
    for (size_t i = 0, k = l->n; i + 1 < k; i++) {
        struct value swap = l->items[i];

        l->items[i] = l->items[--k];
        l->items[k] = swap;
    }
    return value_none();
}

static struct value list_clear(struct render *r, struct value self, const struct args *a)
{
    (void)r, (void)a;
    *self.list = (struct list){0};
    return value_none();
}

/* -- dict ---------------------------------------------------------------- */

static struct value dict_get(struct render *r, struct value self, const struct args *a)
{
    const struct value *otherwise = args_get(a, 1, "default");
    struct value *found = dict_find(r, self.dict, args_need(r, a, 0, "key", "get()"));

    if (found)
        return *found;
    return otherwise ? *otherwise : value_none();
}

static struct value dict_keys(struct render *r, struct value self, const struct args *a)
{
    struct items keys = value_items(r, self);
    struct list *l = ARENA_NEW(&r->arena, struct list);

    (void)a;
    for (size_t i = 0; i < keys.n; i++)
        list_add(r, l, keys.p[i]);
    return value_list(l);
}

static struct value dict_values(struct render *r, struct value self, const struct args *a)
{
    struct list *l = list_new(r, self.dict->n);

    (void)a;
    for (size_t i = 0; i < self.dict->n; i++)
        list_add(r, l, self.dict->items[i].value);
    return value_list(l);
}

static struct value dict_items(struct render *r, struct value self, const struct args *a)
{
    (void)a;
    return value_list(dict_pairs(r, self.dict));
}

static void merge(struct render *r, struct dict *into, const struct dict *from)
{
    size_t n = from->n;

    for (size_t i = 0; i < n; i++)
        dict_put(r, into, from->items[i].key, from->items[i].value);
}

static struct value dict_copy(struct render *r, struct value self, const struct args *a)
{
    struct dict *d = dict_new(r);

    (void)a;
    merge(r, d, self.dict);
    return value_dict(d);
}

static struct value dict_update(struct render *r, struct value self, const struct args *a)
{
    if (a->n && a->pos[0].type != VALUE_DICT)
        render_fail(r, "update() needs a mapping, not '%s'", value_type_name(a->pos[0]));
    if (a->n)
        merge(r, self.dict, a->pos[0].dict);
    for (size_t i = 0; i < a->n_kw; i++)
        dict_put(r, self.dict,
                 value_text(text_borrow(r, a->kw[i].name, a->kw[i].len, a->kw[i].origin)),
                 a->kw[i].value);
    return value_none();
}

static struct value dict_pop(struct render *r, struct value self, const struct args *a)
{
    struct value key = args_need(r, a, 0, "key", "pop()");
    const struct value *otherwise = args_get(a, 1, "default");
    struct value *found = dict_find(r, self.dict, key);
    struct value v;

    if (!found && !otherwise)
        render_fail(r, "pop() does not find the key");
    v = found ? *found : *otherwise;
    dict_remove(r, self.dict, key);
    return v;
}

static struct value dict_setdefault(struct render *r, struct value self, const struct args *a)
{
    struct value key = args_need(r, a, 0, "key", "setdefault()");
    const struct value *otherwise = args_get(a, 1, "default");
    struct value *found = dict_find(r, self.dict, key);
    struct value v = found ? *found : otherwise ? *otherwise : value_none();

    if (!found)
        dict_put(r, self.dict, key, v);
    return v;
}

/* -- loop, cycler -------------------------------------------------------- */

static struct value loop_cycle(struct render *r, struct value self, const struct args *a)
{
    if (a->n == 0)
        render_fail(r, "no items for cycling given");
    return a->pos[self.loop->at % a->n];
}

static struct value loop_changed(struct render *r, struct value self, const struct args *a)
{
    struct list *l = list_new(r, a->n);
    struct value now = {.type = VALUE_TUPLE, .list = l};
    bool same;

    for (size_t i = 0; i < a->n; i++)
        list_add(r, l, a->pos[i]);
    same = self.loop->has_changed && value_equal(r, self.loop->changed, now);
    self.loop->changed = now;
    self.loop->has_changed = true;
    return value_bool(!same);
}

static struct value cycler_next(struct render *r, struct value self, const struct args *a)
{
    return call_value(r, self, a);
}

static struct value cycler_reset(struct render *r, struct value self, const struct args *a)
{
    (void)r, (void)a;
    self.cycler->at = 0;
    return value_none();
}

/* -- the table ----------------------------------------------------------- */

static const struct method_row others[] = {
    {VALUE_LIST, "append", list_append},
    {VALUE_LIST, "extend", list_extend},
    {VALUE_LIST, "insert", list_insert},
    {VALUE_LIST, "pop", list_pop},
    {VALUE_LIST, "index", list_index},
    {VALUE_LIST, "count", list_count},
    {VALUE_LIST, "copy", list_copy},
    {VALUE_LIST, "reverse", list_reverse},
    {VALUE_LIST, "clear", list_clear},
    {VALUE_TUPLE, "index", list_index},
    {VALUE_TUPLE, "count", list_count},
    {VALUE_DICT, "get", dict_get},
    {VALUE_DICT, "keys", dict_keys},
    {VALUE_DICT, "values", dict_values},
    {VALUE_DICT, "items", dict_items},
    {VALUE_DICT, "copy", dict_copy},
    {VALUE_DICT, "update", dict_update},
    {VALUE_DICT, "pop", dict_pop},
    {VALUE_DICT, "setdefault", dict_setdefault},
    {VALUE_LOOP, "cycle", loop_cycle},
    {VALUE_LOOP, "changed", loop_changed},
    {VALUE_CYCLER, "next", cycler_next},
    {VALUE_CYCLER, "reset", cycler_reset},
    {VALUE_UNDEFINED, NULL, NULL},
};

const struct method *method_find(struct render *r, struct value self, const char *name)
{
    const struct method_row *row = self.type == VALUE_STRING ? methods_text : others;
    struct method *m;

    while (row->name && (row->type != self.type || strcmp(row->name, name) != 0))
        row++;
    if (!row->name)
        return NULL;
    m = ARENA_NEW(&r->arena, struct method);
    *m = (struct method){.name = row->name, .self = self, .call = row->call};
    return m;
}
