/*
 * eval - one render: its limits, its scopes, and the calls between the parts
 * of the interpreter (eval.c expressions, exec.c statements, call.c macros and
 * arguments, filters*.c, methods.c, tests.c, globals.c).
 *
 * To add a filter, test, method or global: one function and one row of the
 * table in its file.
 */
#pragma once

#include "daemon/template/ast.h"
#include "daemon/template/text.h"
#include "daemon/template/value.h"

struct var {
    const struct name *name;
    struct value value;
};

struct scope {
    struct scope *parent;
    struct var *vars;
    size_t n;
    size_t cap;
    bool captured; /* a macro refers to it: it may not be used again for the next turn of a loop */
};

struct render {
    struct arena arena;
    const struct template *t;
    const struct template_context *context;
    struct template_limits limits;
    size_t steps;
    size_t depth;
    int line; /* of the statement that runs */
    struct scope *scope;
    struct buffer *out;
    json_t *json; /* what from_json is reading: freed with the render */
};

_Noreturn void render_fail(struct render *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Counts one step, and more for work over `size` bytes or items. */
void render_work(struct render *r, size_t size);
void render_enter(struct render *r); /* one level deeper, or fails */
void render_leave(struct render *r);

/* -- eval.c, exec.c ------------------------------------------------------ */

struct value eval(struct render *r, const struct node *n);
struct value eval_binary(struct render *r, enum node_type op, struct value a, struct value b);
struct value eval_attr(struct render *r, struct value object, const char *name, size_t len);
struct value eval_item(struct render *r, struct value object, struct value key);

enum flow { FLOW_NEXT, FLOW_BREAK, FLOW_CONTINUE };

enum flow exec(struct render *r, const struct node *n);
/* Runs n in a scope below parent with its output caught as a string. */
struct value exec_capture(struct render *r, const struct node *n, struct scope *scope);

void scope_set(struct render *r, struct scope *s, const struct name *name, struct value v);
struct value *scope_find(struct render *r, struct scope *s, const struct name *name);

/* -- loops --------------------------------------------------------------- */

struct loop {
    struct items items;
    size_t at;
    size_t depth; /* from 1 */
    const struct node *node;
    struct scope *outer; /* where a recursive loop runs again */
    struct value changed;
    bool has_changed;
};

struct value loop_run_again(struct render *r, const struct loop *loop, struct value over);
struct value loop_attr(struct render *r, struct loop *loop, const char *name);

/* -- calls --------------------------------------------------------------- */

struct kwarg {
    const char *name;
    size_t len;
    enum template_origin origin; /* of the name: **mapping may bring it from a message */
    struct value value;
};

struct args {
    struct value *pos;
    size_t n;
    struct kwarg *kw;
    size_t n_kw;
};

struct macro {
    const struct node *node;
    struct scope *scope; /* where it was defined */
    bool is_caller;
};

typedef struct value function_fn(struct render *r, const struct args *args);

struct function {
    const char *name;
    function_fn *call;
};

typedef struct value method_fn(struct render *r, struct value self, const struct args *args);

struct method {
    const char *name;
    struct value self;
    method_fn *call;
};

void args_eval(struct render *r, const struct node *n, struct args *ret_args);
/* Argument i, or the one of that name; NULL when not given. */
const struct value *args_get(const struct args *a, size_t i, const char *name);
/* As args_get; fails with what's name when it is not there. */
struct value args_need(struct render *r, const struct args *a, size_t i, const char *name,
                       const char *what);
bool args_bool(struct render *r, const struct args *a, size_t i, const char *name, bool otherwise);
int64_t args_int(struct render *r, const struct args *a, size_t i, const char *name,
                 int64_t otherwise);
/* NULL when not given or none; fails when it is no string. */
const struct text *args_text(struct render *r, const struct args *a, size_t i, const char *name);
/* Fails when there are more than most by position, or a name that is not in "a b c". */
void args_check(struct render *r, const struct args *a, const char *what, size_t most,
                const char *names);
int64_t value_to_index(struct render *r, struct value v, const char *what);

struct value call_value(struct render *r, struct value callee, const struct args *args);
struct value call_node(struct render *r, const struct node *n);

/* -- tables -------------------------------------------------------------- */

typedef struct value filter_fn(struct render *r, struct value v, const struct args *args);
typedef bool test_fn(struct render *r, struct value v, const struct args *args);

struct filter {
    const char *name;
    filter_fn *call;
};

extern const struct filter filters_text[], filters_seq[]; /* end with a NULL name */

struct value filter_apply(struct render *r, const char *name, struct value v,
                          const struct args *args);
bool test_apply(struct render *r, const char *name, struct value v, const struct args *args);
test_fn *test_find(const char *name);
filter_fn *filter_find(const char *name);

/* A bound method, or NULL. */
const struct method *method_find(struct render *r, struct value self, const char *name);
/* A global function; false when there is none of that name. */
bool global_find(const char *name, struct value *ret_value);
