/* Values: making, comparing, containers.  See value.h. */
#include "daemon/template/value.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/alloc.h"
#include "common/hash.h"
#include "daemon/template/eval.h"
#include "daemon/template/show.h"
#include "daemon/template/text.h"

#define INDEX_FROM    8 /* items a dict searches one after the other */
#define MAX_RANGE     100000
#define MAX_JSON_DEEP 500

struct value value_cstr(struct render *r, const char *p)
{
    return value_text(text_borrow(r, p, strlen(p), TEMPLATE_ORIGIN_TRUSTED));
}

static struct value undefined(struct render *r, const char *object, const char *key, bool element)
{
    struct undefined *u = ARENA_NEW(&r->arena, struct undefined);

    *u = (struct undefined){.object = object, .key = key, .element = element};
    return (struct value){.type = VALUE_UNDEFINED, .undefined = u};
}

struct value value_undefined_name(struct render *r, const char *name)
{
    return undefined(r, NULL, name, false);
}

struct value value_undefined_key(struct render *r, struct value object, struct value key)
{
    const char *type = value_type_name(object);
    char *shown = arena_bytes(&r->arena, 64);
    struct buffer b = {0};

    if (object.type == VALUE_NONE)
        snprintf(shown, 64, "None");
    else
        snprintf(shown, 64, "%s object", type);
    if (key.type == VALUE_STRING)
        return undefined(r, shown, text_cstr(r, text_sub(r, key.text, 0, MIN(key.text->len, 80))),
                         false);
    if (key.type == VALUE_INT)
        show_add_repr(r, &b, key);
    else
        buffer_adds(r, &b, value_type_name(key));
    return undefined(r, shown, text_cstr(r, buffer_text(r, &b)), true);
}

struct value value_known(struct render *r, struct value v)
{
    const struct undefined *u = v.undefined;

    if (v.type != VALUE_UNDEFINED)
        return v;
    if (!u->object)
        render_fail(r, "'%s' is undefined", u->key);
    if (u->element)
        render_fail(r, "%s has no element %s", u->object, u->key);
    render_fail(r, "'%s' has no attribute '%s'", u->object, u->key);
}

struct value value_range(struct render *r, int64_t start, int64_t stop, int64_t step)
{
    struct range *range = ARENA_NEW(&r->arena, struct range);
    __int128 span = (__int128)stop - start;
    __int128 n = 0;

    if (step == 0)
        render_fail(r, "range() arg 3 must not be zero");
    if ((span > 0) == (step > 0) && span != 0)
        n = step > 0 ? (span + step - 1) / step : (-span - step - 1) / -(__int128)step;
    if (n > MAX_RANGE)
        arena_fail(&r->arena, ERR_TOO_LARGE,
                   "the chat template asks for a range of more than %d numbers", MAX_RANGE);
    *range = (struct range){.start = start, .step = step, .n = (size_t)n};
    return (struct value){.type = VALUE_RANGE, .range = range};
}

struct value range_at(const struct range *range, size_t i)
{
    return value_int((__int128)range->start + (__int128)range->step * (__int128)i);
}

/* -- lists --------------------------------------------------------------- */

struct list *list_new(struct render *r, size_t cap)
{
    struct list *l = ARENA_NEW(&r->arena, struct list);

    if (cap) {
        l->items = arena_array(&r->arena, cap, sizeof *l->items);
        l->cap = cap;
    }
    return l;
}

void list_add(struct render *r, struct list *l, struct value v)
{
    render_work(r, 1);
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 4;

        l->items = arena_grow(&r->arena, l->items, l->n, cap, sizeof *l->items);
        l->cap = cap;
    }
    l->items[l->n++] = v;
}

struct list *list_pair(struct render *r, struct value a, struct value b)
{
    struct list *l = list_new(r, 2);

    list_add(r, l, a);
    list_add(r, l, b);
    return l;
}

struct value value_pair(struct render *r, struct value a, struct value b)
{
    return (struct value){.type = VALUE_TUPLE, .list = list_pair(r, a, b)};
}

/* -- dicts --------------------------------------------------------------- */

bool value_is_hashable(struct render *r, struct value v)
{
    bool is = v.type != VALUE_LIST && v.type != VALUE_DICT;

    if (v.type != VALUE_TUPLE)
        return is;
    render_enter(r);
    for (size_t i = 0; i < v.list->n && is; i++)
        is = value_is_hashable(r, v.list->items[i]);
    render_leave(r);
    return is;
}

/* Equal values hash alike: True, 1 and 1.0 are one key. */
static uint64_t hash_of(struct render *r, struct value v)
{
    uint64_t h = (uint64_t)v.type;

    switch (v.type) {
    case VALUE_STRING: render_work(r, v.text->len); return hash_bytes(v.text->p, v.text->len);
    case VALUE_BOOL: v = value_int(v.boolean); break;
    case VALUE_FLOAT:
        if (v.real == floor(v.real) && fabs(v.real) < 0x1p126)
            v = value_int((__int128)v.real);
        else
            return hash_bytes(&v.real, sizeof v.real);
        break;
    case VALUE_TUPLE:
        render_enter(r);
        for (size_t i = 0; i < v.list->n; i++) {
            uint64_t part = hash_of(r, v.list->items[i]);

            h = hash_bytes_seed(&part, sizeof part, h);
        }
        render_leave(r);
        return h;
    case VALUE_LIST:
    case VALUE_DICT: render_fail(r, "unhashable type: '%s'", value_type_name(v));
    case VALUE_INT: break;
    default: return h;
    }
    return hash_bytes(&v.integer, sizeof v.integer);
}

struct dict *dict_new(struct render *r)
{
    return ARENA_NEW(&r->arena, struct dict);
}

static void put_slot(struct dict *d, size_t item)
{
    size_t at = d->items[item].hash & (d->n_slots - 1);

    while (d->slots[at])
        at = (at + 1) & (d->n_slots - 1);
    d->slots[at] = (uint32_t)item + 1;
}

static void build_slots(struct render *r, struct dict *d)
{
    if (d->cap <= INDEX_FROM)
        return;
    d->n_slots = d->cap * 2;
    d->slots = arena_array(&r->arena, d->n_slots, sizeof *d->slots);
    render_work(r, d->n);
    for (size_t i = 0; i < d->n; i++)
        put_slot(d, i);
}

static bool same_key(struct render *r, const struct dict_item *it, struct value key, uint64_t hash)
{
    return it->hash == hash && value_equal(r, it->key, key);
}

static struct dict_item *find_item(struct render *r, const struct dict *d, struct value key,
                                   uint64_t hash)
{
    size_t at;

    render_work(r, 1);
    if (!d->slots) {
        for (size_t i = 0; i < d->n; i++)
            if (same_key(r, &d->items[i], key, hash))
                return &d->items[i];
        return NULL;
    }
    for (at = hash & (d->n_slots - 1); d->slots[at]; at = (at + 1) & (d->n_slots - 1)) {
        struct dict_item *it = &d->items[d->slots[at] - 1];

        if (same_key(r, it, key, hash))
            return it;
        render_work(r, 1);
    }
    return NULL;
}

struct value *dict_find(struct render *r, const struct dict *d, struct value key)
{
    struct dict_item *it = d->n ? find_item(r, d, key, hash_of(r, key)) : NULL;

    return it ? &it->value : NULL;
}

struct value *dict_find_cstr(struct render *r, const struct dict *d, const char *key)
{
    struct text text = {.p = key, .len = strlen(key)};

    return dict_find(r, d, value_text(&text));
}

void dict_put(struct render *r, struct dict *d, struct value key, struct value v)
{
    uint64_t hash = hash_of(r, key);
    struct dict_item *it = find_item(r, d, key, hash);

    if (it) {
        it->value = v;
        return;
    }
    if (d->n == d->cap) {
        size_t cap = d->cap ? d->cap * 2 : 4;

        if (cap > UINT32_MAX / 4)
            render_fail(r, "a mapping of the chat template has too many keys");
        d->items = arena_grow(&r->arena, d->items, d->n, cap, sizeof *d->items);
        d->cap = cap;
        build_slots(r, d);
    }
    d->items[d->n] = (struct dict_item){.key = key, .value = v, .hash = hash};
    d->n++;
    if (d->slots)
        put_slot(d, d->n - 1);
}

bool dict_remove(struct render *r, struct dict *d, struct value key)
{
    struct dict_item *it = d->n ? find_item(r, d, key, hash_of(r, key)) : NULL;
    size_t at;

    if (!it)
        return false;
    at = (size_t)(it - d->items);
    /* A new array: whoever iterates over the old one still sees it whole. */
    d->items = arena_grow(&r->arena, d->items, d->n, d->cap, sizeof *d->items);
    memmove(d->items + at, d->items + at + 1, (d->n - at - 1) * sizeof *d->items);
    d->n--;
    render_work(r, d->n);
    d->slots = NULL;
    build_slots(r, d);
    return true;
}

struct list *dict_pairs(struct render *r, const struct dict *d)
{
    struct list *l = list_new(r, d->n);

    for (size_t i = 0; i < d->n; i++)
        list_add(r, l, value_pair(r, d->items[i].key, d->items[i].value));
    return l;
}

/* -- from JSON ----------------------------------------------------------- */

struct json_walk {
    enum template_origin origin;
    int deep;
};

static bool is_trusted_word(const struct render *r, const char *key, const char *word)
{
    const struct template_context *c = r->context;

    if (!c || !key || !c->trusted_key || !c->trusted_words || strcmp(key, c->trusted_key) != 0)
        return false;
    for (const char *const *w = c->trusted_words; *w; w++)
        if (strcmp(*w, word) == 0)
            return true;
    return false;
}

static struct value of_json(struct render *r, const json_t *json, const char *under,
                            struct json_walk walk)
{
    const char *key;
    json_t *member;
    size_t i;
    struct list *list;
    struct dict *dict;

    render_work(r, 1);
    if (++walk.deep > MAX_JSON_DEEP)
        render_fail(r, "a value of the chat template is nested deeper than %d", MAX_JSON_DEEP);
    switch (json_typeof(json)) {
    case JSON_STRING:
        if (is_trusted_word(r, under, json_string_value(json)))
            walk.origin = TEMPLATE_ORIGIN_TRUSTED;
        return value_text(
            text_borrow(r, json_string_value(json), json_string_length(json), walk.origin));
    case JSON_INTEGER: return value_int(json_integer_value(json));
    case JSON_REAL: return value_float(json_real_value(json));
    case JSON_TRUE: return value_bool(true);
    case JSON_FALSE: return value_bool(false);
    case JSON_NULL: return value_none();
    case JSON_ARRAY:
        list = list_new(r, json_array_size(json));
        json_array_foreach(json, i, member) list_add(r, list, of_json(r, member, NULL, walk));
        return value_list(list);
    case JSON_OBJECT: break;
    }
    dict = dict_new(r);
    /* jansson's foreach takes no const object, but changes nothing. */
    for (void *it = json_object_iter((json_t *)(uintptr_t)json); it;
         it = json_object_iter_next((json_t *)(uintptr_t)json, it)) {
        key = json_object_iter_key(it);
        dict_put(r, dict,
                 value_text(text_borrow(r, key, json_object_iter_key_len(it), walk.origin)),
                 of_json(r, json_object_iter_value(it), key, walk));
    }
    return value_dict(dict);
}

struct value value_of_json(struct render *r, const json_t *json, enum template_origin origin)
{
    return of_json(r, json, NULL, (struct json_walk){.origin = origin});
}
