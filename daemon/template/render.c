/* The public render, and the limits it holds.  See template.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "daemon/template/eval.h"

static const struct template_limits defaults = {
    .depth = 1000,
    .steps = 20000000,
    .output_bytes = (size_t)32 << 20,
    .memory_bytes = (size_t)128 << 20,
};

void render_fail(struct render *r, const char *fmt, ...)
{
    char text[400];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    arena_fail(&r->arena, ERR_UNPROCESSABLE, "line %d of the chat template: %s", r->line, text);
}

void render_work(struct render *r, size_t size)
{
    r->steps += 1 + size / 32;
    if (r->steps > r->limits.steps)
        arena_fail(&r->arena, ERR_TOO_LARGE,
                   "line %d of the chat template: it runs longer than %zu steps", r->line,
                   r->limits.steps);
}

void render_enter(struct render *r)
{
    if (++r->depth > r->limits.depth)
        arena_fail(&r->arena, ERR_TOO_LARGE, "line %d of the chat template: nested deeper than %zu",
                   r->line, r->limits.depth);
}

void render_leave(struct render *r)
{
    r->depth--;
}

static struct template_limits limits_with_defaults(const struct template_limits *given)
{
    struct template_limits l = given ? *given : defaults;

    l.depth = l.depth ? l.depth : defaults.depth;
    l.steps = l.steps ? l.steps : defaults.steps;
    l.output_bytes = l.output_bytes ? l.output_bytes : defaults.output_bytes;
    l.memory_bytes = l.memory_bytes ? l.memory_bytes : defaults.memory_bytes;
    return l;
}

/* Only what the template names is converted. */
static void add_vars(struct render *r, struct scope *s)
{
    for (size_t i = 0; i < r->context->n_vars; i++) {
        const struct template_var *v = &r->context->vars[i];
        const struct name *name = map_gets(r->t->names, v->name);

        if (name && v->value)
            scope_set(r, s, name, value_of_json(r, v->value, v->origin));
    }
}

static void make_output(const struct buffer *b, struct template_output *out)
{
    size_t cap = 0;

    str_add(&out->text, b->p, b->len);
    for (size_t at = 0; at < b->len;) {
        unsigned char origin = b->marks ? b->marks[at] : b->origin;
        size_t from = at;

        while (at < b->len && (b->marks ? b->marks[at] : b->origin) == origin)
            at++;
        if (origin == TEMPLATE_ORIGIN_TRUSTED)
            continue;
        ARRAY_GROW(out->spans, out->n_spans + 1, cap);
        out->spans[out->n_spans++] = (struct template_span){from, at};
    }
}

int template_render(const struct template *t, const struct template_context *context,
                    const struct template_limits *limits, struct template_output *ret_out,
                    struct err *err)
{
    struct template_output out = {0};
    struct render *r = XNEW(struct render);
    struct scope globals = {0};
    struct buffer text = {0};
    int result;

    r->limits = limits_with_defaults(limits);
    r->t = t;
    r->context = context;
    r->scope = &globals;
    r->out = &text;
    arena_init(&r->arena, r->limits.memory_bytes, err);
    if (ARENA_TRY(&r->arena) == 0) {
        add_vars(r, &globals);
        exec(r, t->root);
        make_output(&text, &out);
        *ret_out = out;
    }
    result = r->arena.kind;
    if (r->json)
        json_decref(r->json);
    arena_clear(&r->arena);
    free(r);
    return result;
}

void template_output_clear(struct template_output *out)
{
    str_clear(&out->text);
    free(out->spans);
    *out = (struct template_output){0};
}
