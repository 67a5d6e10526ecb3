/* Arguments, macros, and calling what can be called.  See eval.h. */
#include <math.h>
#include <string.h>

#include "daemon/template/eval.h"
#include "daemon/template/show.h"

static void add_pos(struct render *r, struct args *a, size_t *cap, struct value v)
{
    if (a->n == *cap) {
        *cap = *cap ? *cap * 2 : 4;
        a->pos = arena_grow(&r->arena, a->pos, a->n, *cap, sizeof *a->pos);
    }
    render_work(r, 0);
    a->pos[a->n++] = v;
}

static void add_kw(struct render *r, struct args *a, size_t *cap, struct kwarg kw)
{
    if (a->n_kw == *cap) {
        *cap = *cap ? *cap * 2 : 4;
        a->kw = arena_grow(&r->arena, a->kw, a->n_kw, *cap, sizeof *a->kw);
    }
    render_work(r, a->n_kw);
    for (size_t i = 0; i < a->n_kw; i++)
        if (a->kw[i].len == kw.len && memcmp(a->kw[i].name, kw.name, kw.len) == 0)
            render_fail(r, "got multiple values for the argument '%s'", kw.name);
    a->kw[a->n_kw++] = kw;
}

static void add_mapping(struct render *r, struct args *a, size_t *cap, struct value v)
{
    if (v.type != VALUE_DICT)
        render_fail(r, "argument after ** must be a mapping, not %s", value_type_name(v));
    for (size_t i = 0; i < v.dict->n; i++) {
        struct value key = v.dict->items[i].key;

        if (key.type != VALUE_STRING)
            render_fail(r, "keywords must be strings");
        add_kw(r, a, cap,
               (struct kwarg){text_cstr(r, key.text), key.text->len, text_origin(key.text),
                              v.dict->items[i].value});
    }
}

void args_eval(struct render *r, const struct node *n, struct args *ret_args)
{
    struct args a = {0};
    size_t cap = 0, cap_kw = 0;

    for (size_t i = 0; i < n->n_args; i++) {
        const struct arg *arg = &n->args[i];
        struct value v = eval(r, arg->value);

        if (arg->stars == 1) {
            struct items items = value_items(r, v);

            for (size_t k = 0; k < items.n; k++)
                add_pos(r, &a, &cap, items.p[k]);
        } else if (arg->stars == 2) {
            add_mapping(r, &a, &cap_kw, v);
        } else if (arg->name) {
            add_kw(r, &a, &cap_kw,
                   (struct kwarg){arg->name->p, arg->name->len, TEMPLATE_ORIGIN_TRUSTED, v});
        } else {
            add_pos(r, &a, &cap, v);
        }
    }
    *ret_args = a;
}

const struct value *args_get(const struct args *a, size_t i, const char *name)
{
    size_t len = strlen(name);

    if (i < a->n)
        return &a->pos[i];
    for (size_t k = 0; k < a->n_kw; k++)
        if (a->kw[k].len == len && memcmp(a->kw[k].name, name, len) == 0)
            return &a->kw[k].value;
    return NULL;
}

struct value args_need(struct render *r, const struct args *a, size_t i, const char *name,
                       const char *what)
{
    const struct value *v = args_get(a, i, name);

    if (!v)
        render_fail(r, "%s needs the argument '%s'", what, name);
    return *v;
}

bool args_bool(struct render *r, const struct args *a, size_t i, const char *name, bool otherwise)
{
    const struct value *v = args_get(a, i, name);

    return v ? value_truth(r, *v) : otherwise;
}

int64_t value_to_index(struct render *r, struct value v, const char *what)
{
    value_known(r, v);
    if (v.type == VALUE_BOOL)
        return v.boolean;
    if (v.type == VALUE_FLOAT && v.real == floor(v.real) && fabs(v.real) < 0x1p53)
        return (int64_t)v.real;
    if (v.type != VALUE_INT)
        render_fail(r, "%s needs an integer, not '%s'", what, value_type_name(v));
    if (v.integer > INT64_MAX / 2 || v.integer < INT64_MIN / 2)
        render_fail(r, "%s: the number is too large", what);
    return (int64_t)v.integer;
}

int64_t args_int(struct render *r, const struct args *a, size_t i, const char *name,
                 int64_t otherwise)
{
    const struct value *v = args_get(a, i, name);

    return v && v->type != VALUE_NONE ? value_to_index(r, *v, name) : otherwise;
}

const struct text *args_text(struct render *r, const struct args *a, size_t i, const char *name)
{
    const struct value *v = args_get(a, i, name);

    if (!v || v->type == VALUE_NONE)
        return NULL;
    value_known(r, *v);
    if (v->type != VALUE_STRING)
        render_fail(r, "the argument '%s' must be a string, not '%s'", name, value_type_name(*v));
    return v->text;
}

static bool is_listed(const char *names, const struct kwarg *kw)
{
    for (const char *p = names; *p;) {
        size_t len = strcspn(p, " ");

        if (len == kw->len && memcmp(p, kw->name, len) == 0)
            return true;
        p += len;
        p += *p == ' ';
    }
    return false;
}

void args_check(struct render *r, const struct args *a, const char *what, size_t most,
                const char *names)
{
    if (a->n > most)
        render_fail(r, "%s takes at most %zu arguments, %zu were given", what, most, a->n);
    for (size_t i = 0; i < a->n_kw; i++)
        if (!is_listed(names, &a->kw[i]))
            render_fail(r, "%s has no argument '%s'", what, a->kw[i].name);
}

/* -- macros -------------------------------------------------------------- */

static const char *macro_name(const struct macro *m)
{
    return m->node->name ? m->node->name->p : "caller";
}

static bool is_param(const struct node *n, const struct kwarg *kw)
{
    for (size_t i = 0; i < n->n_params; i++)
        if (n->params[i].name->len == kw->len &&
            memcmp(n->params[i].name->p, kw->name, kw->len) == 0)
            return true;
    return false;
}

/* What no parameter takes goes to varargs and kwargs, if the template has these names. */
static void bind_rest(struct render *r, const struct macro *m, struct scope *s,
                      const struct args *args)
{
    const struct name *varargs = map_gets(r->t->names, "varargs");
    const struct name *kwargs = map_gets(r->t->names, "kwargs");
    const struct name *caller = map_gets(r->t->names, "caller");
    struct list *rest = list_new(r, 0);
    struct dict *named = dict_new(r);
    bool has_caller = false;

    for (size_t i = m->node->n_params; i < args->n; i++)
        list_add(r, rest, args->pos[i]);
    for (size_t i = 0; i < args->n_kw; i++) {
        const struct kwarg *kw = &args->kw[i];

        if (is_param(m->node, kw))
            continue;
        if (m->node->flag && caller && strcmp(kw->name, "caller") == 0) {
            scope_set(r, s, caller, kw->value);
            has_caller = true;
            continue;
        }
        if (!kwargs)
            render_fail(r, "macro '%s' takes no keyword argument '%s'", macro_name(m), kw->name);
        dict_put(r, named, value_text(text_borrow(r, kw->name, kw->len, kw->origin)), kw->value);
    }
    if (rest->n && !varargs)
        render_fail(r, "macro '%s' takes not more than %zu argument(s)", macro_name(m),
                    m->node->n_params);
    if (varargs)
        scope_set(r, s, varargs, (struct value){.type = VALUE_TUPLE, .list = rest});
    if (kwargs)
        scope_set(r, s, kwargs, value_dict(named));
    if (m->node->flag && caller && !has_caller)
        scope_set(r, s, caller, value_undefined_name(r, "caller"));
}

static struct value call_macro(struct render *r, const struct macro *m, const struct args *args)
{
    const struct node *n = m->node;
    struct scope *s = ARENA_NEW(&r->arena, struct scope);
    struct scope *outer = r->scope;

    s->parent = m->scope;
    bind_rest(r, m, s, args);
    r->scope = s;
    for (size_t i = 0; i < n->n_params; i++) {
        const struct param *p = &n->params[i];
        const struct value *given = args_get(args, i, p->name->p);
        struct value v;

        if (given)
            v = *given;
        else if (p->otherwise)
            v = eval(r, p->otherwise);
        else
            v = value_undefined_name(r, p->name->p);
        scope_set(r, s, p->name, v);
    }
    r->scope = outer;
    return exec_capture(r, n->body, s);
}

static struct value call_cycler(struct render *r, struct cycler *c)
{
    struct value v = c->items->items[c->at];

    render_work(r, 0);
    c->at = (c->at + 1) % c->items->n;
    return v;
}

static struct value call_joiner(struct render *r, struct joiner *j)
{
    if (j->used)
        return value_text(j->separator);
    j->used = true;
    return value_cstr(r, "");
}

struct value call_value(struct render *r, struct value callee, const struct args *args)
{
    struct value v;

    render_enter(r);
    switch (value_known(r, callee).type) {
    case VALUE_MACRO: v = call_macro(r, callee.macro, args); break;
    case VALUE_FUNCTION: v = callee.function->call(r, args); break;
    case VALUE_METHOD: v = callee.method->call(r, callee.method->self, args); break;
    case VALUE_LOOP:
        v = loop_run_again(r, callee.loop, args_need(r, args, 0, "iterable", "loop()"));
        break;
    case VALUE_CYCLER: v = call_cycler(r, callee.cycler); break;
    case VALUE_JOINER: v = call_joiner(r, callee.joiner); break;
    default: render_fail(r, "'%s' object is not callable", value_type_name(callee));
    }
    render_leave(r);
    return v;
}

struct value call_node(struct render *r, const struct node *n)
{
    struct value callee = eval(r, n->a);
    struct args args;

    args_eval(r, n, &args);
    return call_value(r, callee, &args);
}
