/* The functions every template has.  To add one: a function, and a row below. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/alloc.h"
#include "daemon/template/eval.h"
#include "daemon/template/show.h"

static struct value call_range(struct render *r, const struct args *a)
{
    int64_t first = value_to_index(r, args_need(r, a, 0, "start", "range()"), "range()");

    args_check(r, a, "range()", 3, "");
    if (a->n == 1)
        return value_range(r, 0, first, 1);
    return value_range(r, first, args_int(r, a, 1, "stop", 0), args_int(r, a, 2, "step", 1));
}

/* dict(a=1), dict([(k, v)]), dict(mapping) */
static struct dict *dict_of_args(struct render *r, const struct args *a)
{
    struct dict *d = dict_new(r);

    if (a->n) {
        struct value v = value_known(r, a->pos[0]);
        struct items items = v.type == VALUE_DICT
                                 ? (struct items){dict_pairs(r, v.dict)->items, v.dict->n}
                                 : value_items(r, v);

        for (size_t i = 0; i < items.n; i++) {
            if (!value_is_list(items.p[i]) || items.p[i].list->n != 2)
                render_fail(r, "dict() needs pairs of key and value");
            dict_put(r, d, items.p[i].list->items[0], items.p[i].list->items[1]);
        }
    }
    for (size_t i = 0; i < a->n_kw; i++)
        dict_put(r, d, value_text(text_borrow(r, a->kw[i].name, a->kw[i].len, a->kw[i].origin)),
                 a->kw[i].value);
    return d;
}

static struct value call_dict(struct render *r, const struct args *a)
{
    return value_dict(dict_of_args(r, a));
}

static struct value call_namespace(struct render *r, const struct args *a)
{
    return (struct value){.type = VALUE_NAMESPACE, .dict = dict_of_args(r, a)};
}

static struct value call_cycler(struct render *r, const struct args *a)
{
    struct cycler *c = ARENA_NEW(&r->arena, struct cycler);

    if (a->n == 0)
        render_fail(r, "cycler() needs at least one item");
    c->items = list_new(r, a->n);
    for (size_t i = 0; i < a->n; i++)
        list_add(r, c->items, a->pos[i]);
    return (struct value){.type = VALUE_CYCLER, .cycler = c};
}

static struct value call_joiner(struct render *r, const struct args *a)
{
    struct joiner *j = ARENA_NEW(&r->arena, struct joiner);
    const struct text *separator = args_text(r, a, 0, "sep");

    j->separator = separator ? separator : value_cstr(r, ", ").text;
    return (struct value){.type = VALUE_JOINER, .joiner = j};
}

static struct value call_raise(struct render *r, const struct args *a)
{
    const struct text *t = show_str(r, args_need(r, a, 0, "message", "raise_exception()"));

    arena_fail(&r->arena, ERR_INVALID, "%s", text_cstr(r, t));
}

static struct value call_strftime(struct render *r, const struct args *a)
{
    const struct text *form = args_text(r, a, 0, "format");
    struct buffer b = {0};
    char shown[512];
    size_t n;

    if (!form)
        render_fail(r, "strftime_now() needs the argument 'format'");
    if (form->len == 0)
        return value_cstr(r, "");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    n = strftime(shown, sizeof shown, text_cstr(r, form), &r->context->now);
#pragma GCC diagnostic pop
    buffer_add(r, &b, shown, n, text_origin(form));
    return value_text(buffer_text(r, &b));
}

static struct value call_lipsum(struct render *r, const struct args *a)
{
    (void)a;
    render_fail(r, "lipsum() is not available: a chat template gives the same text every time");
}

static const struct function functions[] = {
    {"range", call_range},           {"dict", call_dict},     {"namespace", call_namespace},
    {"cycler", call_cycler},         {"joiner", call_joiner}, {"raise_exception", call_raise},
    {"strftime_now", call_strftime}, {"lipsum", call_lipsum},
};

bool global_find(const char *name, struct value *ret_value)
{
    for (size_t i = 0; i < ARRAY_LEN(functions); i++)
        if (strcmp(functions[i].name, name) == 0) {
            *ret_value = (struct value){.type = VALUE_FUNCTION, .function = &functions[i]};
            return true;
        }
    return false;
}
