/* Statements, scopes and loops.  See eval.h. */
#include <string.h>

#include "daemon/template/eval.h"
#include "daemon/template/show.h"

void scope_set(struct render *r, struct scope *s, const struct name *name, struct value v)
{
    render_work(r, s->n);
    for (size_t i = 0; i < s->n; i++)
        if (s->vars[i].name == name) {
            s->vars[i].value = v;
            return;
        }
    if (s->n == s->cap) {
        size_t cap = s->cap ? s->cap * 2 : 4;

        s->vars = arena_grow(&r->arena, s->vars, s->n, cap, sizeof *s->vars);
        s->cap = cap;
    }
    s->vars[s->n++] = (struct var){name, v};
}

struct value *scope_find(struct render *r, struct scope *s, const struct name *name)
{
    for (; s; s = s->parent) {
        render_work(r, s->n);
        for (size_t i = 0; i < s->n; i++)
            if (s->vars[i].name == name)
                return &s->vars[i].value;
    }
    return NULL;
}

static struct scope *scope_below(struct render *r, struct scope *parent)
{
    struct scope *s = ARENA_NEW(&r->arena, struct scope);

    s->parent = parent;
    return s;
}

struct value exec_capture(struct render *r, const struct node *n, struct scope *scope)
{
    struct scope *outer_scope = r->scope;
    struct buffer *outer = r->out;
    struct buffer b = {0};

    r->scope = scope;
    r->out = &b;
    exec(r, n);
    r->out = outer;
    r->scope = outer_scope;
    return value_text(buffer_text(r, &b));
}

/* -- assignment ---------------------------------------------------------- */

static void assign(struct render *r, const struct node *target, struct value v);

static void assign_all(struct render *r, const struct node *target, struct value v)
{
    struct items items = value_items(r, value_known(r, v));

    if (items.n < target->n_items)
        render_fail(r, "not enough values to unpack (expected %zu, got %zu)", target->n_items,
                    items.n);
    if (items.n > target->n_items)
        render_fail(r, "too many values to unpack (expected %zu)", target->n_items);
    for (size_t i = 0; i < items.n; i++)
        assign(r, target->items[i], items.p[i]);
}

static void assign(struct render *r, const struct node *target, struct value v)
{
    struct value *object;

    if (target->type == NODE_NAME) {
        scope_set(r, r->scope, target->name, v);
    } else if (target->type == NODE_TUPLE) {
        assign_all(r, target, v);
    } else {
        object = scope_find(r, r->scope, target->a->name);
        if (!object || object->type != VALUE_NAMESPACE)
            render_fail(r, "cannot assign attribute on non-namespace object");
        dict_put(
            r, object->dict,
            value_text(text_borrow(r, target->name->p, target->name->len, TEMPLATE_ORIGIN_TRUSTED)),
            v);
    }
}

/* -- for ----------------------------------------------------------------- */

/* A scope for the next turn: the last one again, unless a macro holds on to it. */
static struct scope *next_scope(struct render *r, struct scope *last, struct scope *parent)
{
    if (!last || last->captured)
        return scope_below(r, parent);
    last->n = 0;
    return last;
}

static struct items filter_items(struct render *r, const struct node *n, struct items items)
{
    struct scope *outer = r->scope;
    struct scope *s = NULL;
    struct list *kept = list_new(r, 0);

    for (size_t i = 0; i < items.n; i++) {
        s = next_scope(r, s, outer);
        r->scope = s;
        assign(r, n->a, items.p[i]);
        if (value_truth(r, eval(r, n->c)))
            list_add(r, kept, items.p[i]);
    }
    r->scope = outer;
    return (struct items){kept->items, kept->n};
}

static void run_loop(struct render *r, const struct node *n, struct value over, size_t depth)
{
    const struct name *loop_name = map_gets(r->t->names, "loop");
    struct loop *loop = ARENA_NEW(&r->arena, struct loop);
    struct scope *outer = r->scope;
    struct scope *s = NULL;

    loop->items = value_items(r, over);
    if (n->c)
        loop->items = filter_items(r, n, loop->items);
    loop->depth = depth;
    loop->node = n;
    loop->outer = outer;
    for (; loop->at < loop->items.n; loop->at++) {
        s = next_scope(r, s, outer);
        r->scope = s;
        if (loop_name)
            scope_set(r, s, loop_name, (struct value){.type = VALUE_LOOP, .loop = loop});
        assign(r, n->a, loop->items.p[loop->at]);
        if (exec(r, n->body) == FLOW_BREAK)
            break;
    }
    r->scope = outer;
    if (loop->items.n == 0 && n->other) {
        r->scope = scope_below(r, outer);
        exec(r, n->other);
        r->scope = outer;
    }
}

struct value loop_run_again(struct render *r, const struct loop *loop, struct value over)
{
    struct scope *outer_scope = r->scope;
    struct buffer *outer = r->out;
    struct buffer b = {0};

    if (!loop->node->flag)
        render_fail(r, "the loop must have the 'recursive' marker to be called");
    r->scope = loop->outer;
    r->out = &b;
    run_loop(r, loop->node, over, loop->depth + 1);
    r->out = outer;
    r->scope = outer_scope;
    return value_text(buffer_text(r, &b));
}

struct value loop_attr(struct render *r, struct loop *loop, const char *name)
{
    int64_t at = (int64_t)loop->at;
    int64_t n = (int64_t)loop->items.n;

    if (strcmp(name, "index") == 0)
        return value_int(at + 1);
    if (strcmp(name, "index0") == 0)
        return value_int(at);
    if (strcmp(name, "first") == 0)
        return value_bool(at == 0);
    if (strcmp(name, "last") == 0)
        return value_bool(at == n - 1);
    if (strcmp(name, "length") == 0)
        return value_int(n);
    if (strcmp(name, "revindex") == 0)
        return value_int(n - at);
    if (strcmp(name, "revindex0") == 0)
        return value_int(n - at - 1);
    if (strcmp(name, "depth") == 0)
        return value_int((int64_t)loop->depth);
    if (strcmp(name, "depth0") == 0)
        return value_int((int64_t)loop->depth - 1);
    if (strcmp(name, "previtem") == 0 && at > 0 && at <= n)
        return loop->items.p[at - 1];
    if (strcmp(name, "nextitem") == 0 && at + 1 < n)
        return loop->items.p[at + 1];
    return value_undefined_key(r, (struct value){.type = VALUE_LOOP, .loop = loop},
                               value_cstr(r, name));
}

/* -- the other statements ------------------------------------------------ */

/* The filters of a block, applied to its text. */
static struct value apply_chain(struct render *r, const struct node *n, struct value text)
{
    struct args args;
    struct value v = n->a ? apply_chain(r, n->a, text) : text;

    args_eval(r, n, &args);
    return filter_apply(r, n->name->p, v, &args);
}

static enum flow exec_if(struct render *r, const struct node *n)
{
    for (size_t i = 0; i < n->n_items; i += 2)
        if (value_truth(r, eval(r, n->items[i])))
            return exec(r, n->items[i + 1]);
    return n->b ? exec(r, n->b) : FLOW_NEXT;
}

static void capture_scopes(struct scope *s)
{
    for (; s && !s->captured; s = s->parent)
        s->captured = true;
}

static struct value make_macro(struct render *r, const struct node *n, bool is_caller)
{
    struct macro *m = ARENA_NEW(&r->arena, struct macro);

    *m = (struct macro){.node = n, .scope = r->scope, .is_caller = is_caller};
    capture_scopes(r->scope);
    return (struct value){.type = VALUE_MACRO, .macro = m};
}

static void exec_call_block(struct render *r, const struct node *n)
{
    struct value callee = eval(r, n->a->a);
    struct args args;
    struct kwarg *kw;

    args_eval(r, n->a, &args);
    kw = arena_grow(&r->arena, args.kw, args.n_kw, args.n_kw + 1, sizeof *kw);
    kw[args.n_kw] = (struct kwarg){"caller", 6, TEMPLATE_ORIGIN_TRUSTED, make_macro(r, n, true)};
    args.kw = kw;
    args.n_kw++;
    show_add_str(r, r->out, call_value(r, callee, &args));
}

static enum flow exec_with(struct render *r, const struct node *n)
{
    struct scope *outer = r->scope;
    struct scope *s = scope_below(r, outer);
    enum flow flow;

    /* Every value is computed outside: with a=1, b=a does not see the new a. */
    for (size_t i = 0; i < n->n_items; i += 2) {
        struct value v;

        r->scope = outer;
        v = eval(r, n->items[i + 1]);
        r->scope = s;
        assign(r, n->items[i], v);
    }
    r->scope = s;
    flow = exec(r, n->body);
    r->scope = outer;
    return flow;
}

static void exec_set_block(struct render *r, const struct node *n)
{
    struct value v = exec_capture(r, n->body, scope_below(r, r->scope));

    assign(r, n->a, n->b ? apply_chain(r, n->b, v) : v);
}

static enum flow exec_body(struct render *r, const struct node *n)
{
    for (size_t i = 0; i < n->n_items; i++) {
        enum flow flow = exec(r, n->items[i]);

        if (flow != FLOW_NEXT)
            return flow;
    }
    return FLOW_NEXT;
}

static enum flow exec_node(struct render *r, const struct node *n)
{
    struct value v;

    switch (n->type) {
    case NODE_BODY: return exec_body(r, n);
    case NODE_TEXT: buffer_add_text(r, r->out, n->constant.text); break;
    case NODE_PRINT: show_add_str(r, r->out, eval(r, n->a)); break;
    case NODE_IF: return exec_if(r, n);
    case NODE_FOR: run_loop(r, n, eval(r, n->b), 1); break;
    case NODE_SET: assign(r, n->a, eval(r, n->b)); break;
    case NODE_SET_BLOCK: exec_set_block(r, n); break;
    case NODE_MACRO: scope_set(r, r->scope, n->name, make_macro(r, n, false)); break;
    case NODE_CALL_BLOCK: exec_call_block(r, n); break;
    case NODE_FILTER_BLOCK:
        v = exec_capture(r, n->body, scope_below(r, r->scope));
        show_add_str(r, r->out, apply_chain(r, n->b, v));
        break;
    case NODE_WITH: return exec_with(r, n);
    case NODE_BREAK: return FLOW_BREAK;
    case NODE_CONTINUE: return FLOW_CONTINUE;
    default: render_fail(r, "an expression stands where a statement was expected");
    }
    return FLOW_NEXT;
}

enum flow exec(struct render *r, const struct node *n)
{
    enum flow flow;

    render_work(r, 0);
    render_enter(r);
    r->line = n->line;
    flow = exec_node(r, n);
    render_leave(r);
    return flow;
}
