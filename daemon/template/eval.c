/* Expressions.  See eval.h. */
#include "daemon/template/eval.h"

#include <math.h>

#include "common/alloc.h"
#include "daemon/template/show.h"

static _Noreturn void fail_operands(struct render *r, const char *op, struct value a,
                                    struct value b)
{
    value_known(r, a);
    value_known(r, b);
    render_fail(r, "unsupported operand type(s) for %s: '%s' and '%s'", op, value_type_name(a),
                value_type_name(b));
}

static __int128 to_int(struct value v)
{
    return v.type == VALUE_BOOL ? v.boolean : v.integer;
}

static bool is_int(struct value v)
{
    return v.type == VALUE_INT || v.type == VALUE_BOOL;
}

/* By pointer: the result is read after the operation that wrote it has run. */
static struct value checked(struct render *r, bool overflow, const __int128 *result)
{
    if (overflow)
        render_fail(r, "a number is too large");
    return value_int(*result);
}

static struct value floor_div(struct render *r, struct value a, struct value b, bool want_rest)
{
    __int128 x = to_int(a), y = to_int(b);
    __int128 quotient, rest;

    if (value_as_double(b) == 0)
        render_fail(r, "integer division or modulo by zero");
    if (!is_int(a) || !is_int(b)) {
        double p = value_as_double(a), q = value_as_double(b);
        double m = fmod(p, q);

        if (m != 0 && (m < 0) != (q < 0))
            m += q;
        return value_float(want_rest ? m : floor((p - m) / q));
    }
    if (y == -1) /* the one division that can overflow */
        return want_rest ? value_int(0)
                         : checked(r, __builtin_sub_overflow((__int128)0, x, &x), &x);
    quotient = x / y;
    rest = x % y;
    if (rest != 0 && (rest < 0) != (y < 0)) {
        rest += y;
        quotient--;
    }
    return value_int(want_rest ? rest : quotient);
}

static struct value int_pow(struct render *r, __int128 base, __int128 exp)
{
    __int128 result = 1;

    if ((base == 0 || base == 1) && exp > 0)
        return value_int(base);
    if (base == -1)
        return value_int(exp % 2 ? -1 : 1);
    while (exp-- > 0)
        if (__builtin_mul_overflow(result, base, &result))
            render_fail(r, "a number is too large");
    return value_int(result);
}

static struct value number_op(struct render *r, enum node_type op, struct value a, struct value b)
{
    bool ints = is_int(a) && is_int(b);
    double x = value_as_double(a), y = value_as_double(b);
    __int128 i;

    switch (op) {
    case NODE_ADD:
        return ints ? checked(r, __builtin_add_overflow(to_int(a), to_int(b), &i), &i)
                    : value_float(x + y);
    case NODE_SUB:
        return ints ? checked(r, __builtin_sub_overflow(to_int(a), to_int(b), &i), &i)
                    : value_float(x - y);
    case NODE_MUL:
        return ints ? checked(r, __builtin_mul_overflow(to_int(a), to_int(b), &i), &i)
                    : value_float(x * y);
    case NODE_DIV:
        if (y == 0)
            render_fail(r, "division by zero");
        return value_float(x / y);
    case NODE_FLOORDIV: return floor_div(r, a, b, false);
    case NODE_MOD: return floor_div(r, a, b, true);
    default:
        if (ints && to_int(b) >= 0)
            return int_pow(r, to_int(a), to_int(b));
        if (x == 0 && y < 0)
            render_fail(r, "0.0 cannot be raised to a negative power");
        return value_float(pow(x, y));
    }
}

static struct value list_concat(struct render *r, struct value a, struct value b)
{
    struct list *l = list_new(r, a.list->n + b.list->n);

    for (size_t i = 0; i < a.list->n; i++)
        list_add(r, l, a.list->items[i]);
    for (size_t i = 0; i < b.list->n; i++)
        list_add(r, l, b.list->items[i]);
    return (struct value){.type = a.type, .list = l};
}

static struct value list_repeat(struct render *r, struct value a, __int128 times)
{
    struct list *l = list_new(r, 0);

    for (__int128 k = 0; a.list->n && k < times; k++)
        for (size_t i = 0; i < a.list->n; i++)
            list_add(r, l, a.list->items[i]);
    return (struct value){.type = a.type, .list = l};
}

static struct value add(struct render *r, struct value a, struct value b)
{
    value_known(r, a);
    value_known(r, b);
    if (a.type == VALUE_STRING && b.type == VALUE_STRING)
        return value_text(text_concat(r, a.text, b.text));
    if (value_is_list(a) && a.type == b.type)
        return list_concat(r, a, b);
    if (a.type == VALUE_STRING || value_is_list(a))
        render_fail(r, "can only concatenate %s (not \"%s\") to %s", value_type_name(a),
                    value_type_name(b), value_type_name(a));
    fail_operands(r, "+", a, b);
}

static struct value multiply(struct render *r, struct value a, struct value b)
{
    if (is_int(a) && (b.type == VALUE_STRING || value_is_list(b))) {
        struct value swap = a;

        a = b;
        b = swap;
    }
    if (a.type == VALUE_STRING && is_int(b))
        return value_text(text_repeat(r, a.text, (int64_t)MIN(to_int(b), INT64_MAX)));
    if (value_is_list(a) && is_int(b))
        return list_repeat(r, a, to_int(b));
    fail_operands(r, "*", a, b);
}

struct value eval_binary(struct render *r, enum node_type op, struct value a, struct value b)
{
    static const char *const names[] = {
        [NODE_ADD] = "+",       [NODE_SUB] = "-", [NODE_MUL] = "*",  [NODE_DIV] = "/",
        [NODE_FLOORDIV] = "//", [NODE_MOD] = "%", [NODE_POW] = "**",
    };

    if (value_is_number(a) && value_is_number(b))
        return number_op(r, op, a, b);
    if (op == NODE_ADD)
        return add(r, a, b);
    if (op == NODE_MUL)
        return multiply(r, a, b);
    if (op == NODE_MOD && a.type == VALUE_STRING)
        return value_text(show_percent(r, a.text, value_known(r, b)));
    fail_operands(r, names[op], a, b);
}

static bool compare(struct render *r, enum node_type op, struct value a, struct value b)
{
    switch (op) {
    case NODE_EQ: return value_equal(r, a, b);
    case NODE_NE: return !value_equal(r, a, b);
    case NODE_LT: return value_compare(r, a, b, "<") < 0;
    case NODE_LE: return value_compare(r, a, b, "<=") <= 0;
    case NODE_GT: return value_compare(r, a, b, ">") > 0;
    case NODE_GE: return value_compare(r, a, b, ">=") >= 0;
    case NODE_IN: return value_contains(r, b, a);
    default: return !value_contains(r, b, a);
    }
}

static struct value eval_chain(struct render *r, const struct node *n)
{
    struct value left = eval(r, n->items[0]);

    for (size_t i = 1; i < n->n_items; i++) {
        struct value right = eval(r, n->items[i]->b);

        if (!compare(r, n->items[i]->type, left, right))
            return value_bool(false);
        left = right;
    }
    return value_bool(true);
}

/* -- look-ups ------------------------------------------------------------ */

struct value eval_attr(struct render *r, struct value object, const char *name, size_t len)
{
    struct text key = {.p = name, .len = len};
    const struct method *method;
    struct value *found = NULL;

    value_known(r, object);
    method = method_find(r, object, name);
    if (method)
        return (struct value){.type = VALUE_METHOD, .method = method};
    switch (object.type) {
    case VALUE_DICT:
    case VALUE_NAMESPACE: found = dict_find(r, object.dict, value_text(&key)); break;
    case VALUE_LOOP: return loop_attr(r, object.loop, name);
    case VALUE_TUPLE: /* what groupby gives has names for its two parts */
        if (object.list->n == 2 && (text_is(&key, "grouper") || text_is(&key, "list")))
            found = &object.list->items[name[0] == 'l'];
        break;
    case VALUE_CYCLER:
        if (text_is(&key, "current"))
            found = &object.cycler->items->items[object.cycler->at];
        break;
    case VALUE_MACRO:
        if (text_is(&key, "name"))
            return value_cstr(r, object.macro->node->name ? object.macro->node->name->p : "caller");
        break;
    default: break;
    }
    return found ? *found : value_undefined_key(r, object, value_text(&key));
}

/* Index i, from the end when negative, of n things; false when outside. */
static bool find_index(__int128 i, size_t n, size_t *ret_index)
{
    if (i < 0)
        i += (__int128)n;
    if (i < 0 || i >= (__int128)n)
        return false;
    *ret_index = (size_t)i;
    return true;
}

static struct value char_at(struct render *r, const struct text *t, size_t i)
{
    size_t from = text_offset(r, t, i);
    size_t to = from;

    text_next(t, &to);
    return value_text(text_sub(r, t, from, to - from));
}

struct value eval_item(struct render *r, struct value object, struct value key)
{
    struct value *found;
    size_t i;

    value_known(r, object);
    switch (object.type) {
    case VALUE_DICT:
        /* Python's TypeError for a key that is a list counts as not found. */
        found = value_is_hashable(r, key) ? dict_find(r, object.dict, key) : NULL;
        if (found)
            return *found;
        break;
    case VALUE_LIST:
    case VALUE_TUPLE:
        if (is_int(key) && find_index(to_int(key), object.list->n, &i))
            return object.list->items[i];
        break;
    case VALUE_RANGE:
        if (is_int(key) && find_index(to_int(key), object.range->n, &i))
            return range_at(object.range, i);
        break;
    case VALUE_STRING:
        if (is_int(key) && find_index(to_int(key), text_length(r, object.text), &i))
            return char_at(r, object.text, i);
        break;
    default: break;
    }
    if (key.type == VALUE_STRING)
        return eval_attr(r, object, text_cstr(r, key.text), key.text->len);
    return value_undefined_key(r, object, key);
}

/* -- slices -------------------------------------------------------------- */

struct slice {
    int64_t start;
    int64_t step;
    int64_t n;
};

static int64_t bound(struct render *r, const struct node *n, int64_t otherwise, int64_t len,
                     int64_t low, int64_t high)
{
    struct value v = n ? eval(r, n) : value_none();
    int64_t i;

    if (v.type == VALUE_NONE)
        return otherwise;
    i = value_to_index(r, v, "a slice");
    if (i < 0)
        i = MAX(i, -len - 1) + len;
    return MAX(low, MIN(i, high));
}

static struct slice slice_of(struct render *r, const struct node *n, int64_t len)
{
    struct value v = n->c ? eval(r, n->c) : value_none();
    struct slice s = {.step = v.type == VALUE_NONE ? 1 : value_to_index(r, v, "a slice")};
    int64_t stop;

    if (s.step == 0)
        render_fail(r, "slice step cannot be zero");
    s.step = MAX(-len - 1, MIN(s.step, len + 1));
    if (s.step > 0) {
        s.start = bound(r, n->a, 0, len, 0, len);
        stop = bound(r, n->b, len, len, 0, len);
        s.n = stop > s.start ? (stop - s.start + s.step - 1) / s.step : 0;
    } else {
        s.start = bound(r, n->a, len - 1, len, -1, len - 1);
        stop = bound(r, n->b, -1, len, -1, len - 1);
        s.n = stop < s.start ? (s.start - stop - s.step - 1) / -s.step : 0;
    }
    return s;
}

static struct value slice_text(struct render *r, const struct text *t, const struct node *n)
{
    struct slice s = slice_of(r, n, (int64_t)text_length(r, t));
    struct buffer b = {0};
    size_t from, *offsets;
    size_t count = 0;

    if (s.n == 0)
        return value_cstr(r, "");
    if (s.step == 1) {
        from = text_offset(r, t, (size_t)s.start);
        return value_text(
            text_sub(r, t, from, text_offset(r, text_sub(r, t, from, t->len - from), (size_t)s.n)));
    }
    offsets = arena_array(&r->arena, t->len + 1, sizeof *offsets);
    for (size_t at = 0; at < t->len; text_next(t, &at))
        offsets[count++] = at;
    offsets[count] = t->len;
    for (int64_t i = 0, at = s.start; i < s.n; i++, at += s.step)
        buffer_add_sub(r, &b, t, offsets[at], offsets[at + 1] - offsets[at]);
    return value_text(buffer_text(r, &b));
}

static struct value eval_slice(struct render *r, struct value object, const struct node *n)
{
    struct items items;
    struct slice s;
    struct list *l;

    value_known(r, object);
    if (object.type == VALUE_STRING)
        return slice_text(r, object.text, n);
    if (!value_is_list(object) && object.type != VALUE_RANGE)
        return value_undefined_key(r, object, value_cstr(r, "slice"));
    items = value_items(r, object);
    s = slice_of(r, n, (int64_t)items.n);
    l = list_new(r, (size_t)s.n);
    for (int64_t i = 0; i < s.n; i++)
        list_add(r, l, items.p[s.start + i * s.step]);
    return (struct value){.type = object.type == VALUE_TUPLE ? VALUE_TUPLE : VALUE_LIST, .list = l};
}

/* -- nodes --------------------------------------------------------------- */

static struct value eval_name(struct render *r, const struct name *name)
{
    struct value *found = scope_find(r, r->scope, name);
    struct value global;

    if (found)
        return *found;
    if (global_find(name->p, &global))
        return global;
    return value_undefined_name(r, name->p);
}

static struct value eval_list(struct render *r, const struct node *n)
{
    struct list *l = list_new(r, n->n_items);

    for (size_t i = 0; i < n->n_items; i++)
        list_add(r, l, eval(r, n->items[i]));
    return (struct value){.type = n->type == NODE_LIST ? VALUE_LIST : VALUE_TUPLE, .list = l};
}

static struct value eval_dict(struct render *r, const struct node *n)
{
    struct dict *d = dict_new(r);

    for (size_t i = 0; i < n->n_items; i += 2) {
        struct value key = eval(r, n->items[i]);

        dict_put(r, d, key, eval(r, n->items[i + 1]));
    }
    return value_dict(d);
}

static struct value eval_concat(struct render *r, const struct node *n)
{
    const struct text *t = show_str(r, eval(r, n->items[0]));

    for (size_t i = 1; i < n->n_items; i++)
        t = text_concat(r, t, show_str(r, eval(r, n->items[i])));
    return value_text(t);
}

static struct value eval_sign(struct render *r, const struct node *n)
{
    struct value v = value_known(r, eval(r, n->a));
    __int128 negative;

    if (!value_is_number(v))
        render_fail(r, "bad operand type for unary %c: '%s'", n->type == NODE_NEG ? '-' : '+',
                    value_type_name(v));
    if (v.type == VALUE_FLOAT)
        return value_float(n->type == NODE_NEG ? -v.real : v.real);
    if (n->type == NODE_POS)
        return value_int(to_int(v));
    return checked(r, __builtin_sub_overflow((__int128)0, to_int(v), &negative), &negative);
}

static struct value eval_test(struct render *r, const struct node *n)
{
    struct value v = eval(r, n->a);
    struct args args;

    args_eval(r, n, &args);
    return value_bool(test_apply(r, n->name->p, v, &args) != n->flag);
}

static struct value eval_filter(struct render *r, const struct node *n)
{
    struct value v = eval(r, n->a);
    struct args args;

    args_eval(r, n, &args);
    return filter_apply(r, n->name->p, v, &args);
}

static struct value eval_cond(struct render *r, const struct node *n)
{
    if (value_truth(r, eval(r, n->b)))
        return eval(r, n->a);
    return n->c ? eval(r, n->c) : value_undefined_name(r, "the else of an inline if");
}

static struct value eval_node(struct render *r, const struct node *n)
{
    struct value a;

    switch (n->type) {
    case NODE_CONST: return n->constant;
    case NODE_NAME: return eval_name(r, n->name);
    case NODE_LIST:
    case NODE_TUPLE: return eval_list(r, n);
    case NODE_DICT: return eval_dict(r, n);
    case NODE_NOT: return value_bool(!value_truth(r, eval(r, n->a)));
    case NODE_NEG:
    case NODE_POS: return eval_sign(r, n);
    case NODE_AND: a = eval(r, n->a); return value_truth(r, a) ? eval(r, n->b) : a;
    case NODE_OR: a = eval(r, n->a); return value_truth(r, a) ? a : eval(r, n->b);
    case NODE_ADD:
    case NODE_SUB:
    case NODE_MUL:
    case NODE_DIV:
    case NODE_FLOORDIV:
    case NODE_MOD:
    case NODE_POW: a = eval(r, n->a); return eval_binary(r, n->type, a, eval(r, n->b));
    case NODE_EQ:
    case NODE_NE:
    case NODE_LT:
    case NODE_LE:
    case NODE_GT:
    case NODE_GE:
    case NODE_IN:
    case NODE_NOT_IN: a = eval(r, n->a); return value_bool(compare(r, n->type, a, eval(r, n->b)));
    case NODE_CONCAT: return eval_concat(r, n);
    case NODE_CHAIN: return eval_chain(r, n);
    case NODE_COND: return eval_cond(r, n);
    case NODE_ATTR: return eval_attr(r, eval(r, n->a), n->name->p, n->name->len);
    case NODE_ITEM:
        a = eval(r, n->a);
        return n->b->type == NODE_SLICE ? eval_slice(r, a, n->b) : eval_item(r, a, eval(r, n->b));
    case NODE_CALL: return call_node(r, n);
    case NODE_FILTER: return eval_filter(r, n);
    case NODE_TEST: return eval_test(r, n);
    default: render_fail(r, "a statement stands where an expression was expected");
    }
}

struct value eval(struct render *r, const struct node *n)
{
    struct value v;

    render_work(r, 0);
    render_enter(r);
    r->line = n->line;
    v = eval_node(r, n);
    render_leave(r);
    return v;
}
