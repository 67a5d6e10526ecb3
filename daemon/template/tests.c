/* "x is NAME".  To add one: a function, and a row below. */
#include <string.h>

#include "common/alloc.h"
#include "daemon/template/eval.h"

static __int128 need_int(struct render *r, struct value v, const char *what)
{
    value_known(r, v);
    if (v.type != VALUE_INT && v.type != VALUE_BOOL)
        render_fail(r, "the test '%s' needs an integer, not '%s'", what, value_type_name(v));
    return v.type == VALUE_BOOL ? v.boolean : v.integer;
}

static bool is_defined(struct render *r, struct value v, const struct args *a)
{
    (void)r, (void)a;
    return v.type != VALUE_UNDEFINED;
}

static bool is_undefined(struct render *r, struct value v, const struct args *a)
{
    (void)r, (void)a;
    return v.type == VALUE_UNDEFINED;
}

static bool is_none(struct render *r, struct value v, const struct args *a)
{
    (void)r, (void)a;
    return v.type == VALUE_NONE;
}

static bool is_string(struct render *r, struct value v, const struct args *a)
{
    (void)r, (void)a;
    return v.type == VALUE_STRING;
}

static bool is_number(struct render *r, struct value v, const struct args *a)
{
    (void)r, (void)a;
    return value_is_number(v);
}

static bool is_integer(struct render *r, struct value v, const struct args *a)
{
    (void)r, (void)a;
    return v.type == VALUE_INT;
}

static bool is_float(struct render *r, struct value v, const struct args *a)
{
    (void)r, (void)a;
    return v.type == VALUE_FLOAT;
}

static bool is_boolean(struct render *r, struct value v, const struct args *a)
{
    (void)r, (void)a;
    return v.type == VALUE_BOOL;
}

static bool is_true(struct render *r, struct value v, const struct args *a)
{
    (void)r, (void)a;
    return v.type == VALUE_BOOL && v.boolean;
}

static bool is_false(struct render *r, struct value v, const struct args *a)
{
    (void)r, (void)a;
    return v.type == VALUE_BOOL && !v.boolean;
}

static bool is_mapping(struct render *r, struct value v, const struct args *a)
{
    (void)r, (void)a;
    return v.type == VALUE_DICT;
}

/* As in Python: whatever has a length and can be indexed, an undefined value too. */
static bool is_sequence(struct render *r, struct value v, const struct args *a)
{
    (void)r, (void)a;
    return v.type == VALUE_STRING || value_is_list(v) || v.type == VALUE_DICT ||
           v.type == VALUE_RANGE || v.type == VALUE_UNDEFINED;
}

static bool is_iterable(struct render *r, struct value v, const struct args *a)
{
    return is_sequence(r, v, a) || v.type == VALUE_LOOP;
}

/* An undefined value has a __call__ in Python, though it only raises. */
static bool is_callable(struct render *r, struct value v, const struct args *a)
{
    (void)r, (void)a;
    return v.type == VALUE_MACRO || v.type == VALUE_FUNCTION || v.type == VALUE_METHOD ||
           v.type == VALUE_LOOP || v.type == VALUE_CYCLER || v.type == VALUE_JOINER ||
           v.type == VALUE_UNDEFINED;
}

static bool is_odd(struct render *r, struct value v, const struct args *a)
{
    (void)a;
    return need_int(r, v, "odd") % 2 != 0;
}

static bool is_even(struct render *r, struct value v, const struct args *a)
{
    (void)a;
    return need_int(r, v, "even") % 2 == 0;
}

static bool is_divisible(struct render *r, struct value v, const struct args *a)
{
    __int128 by = need_int(r, args_need(r, a, 0, "num", "divisibleby"), "divisibleby");

    if (by == 0)
        render_fail(r, "integer division or modulo by zero");
    return by == -1 || need_int(r, v, "divisibleby") % by == 0;
}

static bool is_lower(struct render *r, struct value v, const struct args *a)
{
    (void)a;
    return v.type == VALUE_STRING && v.text->len &&
           text_equal(text_case(r, v.text, TEXT_LOWER), v.text) &&
           !text_equal(text_case(r, v.text, TEXT_UPPER), v.text);
}

static bool is_upper(struct render *r, struct value v, const struct args *a)
{
    (void)a;
    return v.type == VALUE_STRING && v.text->len &&
           text_equal(text_case(r, v.text, TEXT_UPPER), v.text) &&
           !text_equal(text_case(r, v.text, TEXT_LOWER), v.text);
}

static bool is_same(struct render *r, struct value v, const struct args *a)
{
    struct value other = args_need(r, a, 0, "other", "sameas");

    return v.type == other.type && value_equal(r, v, other);
}

static bool is_escaped(struct render *r, struct value v, const struct args *a)
{
    (void)r, (void)v, (void)a;
    return false;
}

static bool is_in(struct render *r, struct value v, const struct args *a)
{
    return value_contains(r, args_need(r, a, 0, "seq", "in"), v);
}

static const char *name_of(struct render *r, struct value v)
{
    return v.type == VALUE_STRING ? text_cstr(r, v.text) : "";
}

static bool is_test(struct render *r, struct value v, const struct args *a)
{
    (void)a;
    return test_find(name_of(r, v)) != NULL;
}

static bool is_filter(struct render *r, struct value v, const struct args *a)
{
    (void)a;
    return filter_find(name_of(r, v)) != NULL;
}

#define COMPARISON(name, test)                                                                     \
    static bool is_##name(struct render *r, struct value v, const struct args *a)                  \
    {                                                                                              \
        struct value other = args_need(r, a, 0, "other", #name);                                   \
        return test;                                                                               \
    }

COMPARISON(eq, value_equal(r, v, other))
COMPARISON(ne, !value_equal(r, v, other))
COMPARISON(lt, value_compare(r, v, other, "<") < 0)
COMPARISON(le, value_compare(r, v, other, "<=") <= 0)
COMPARISON(gt, value_compare(r, v, other, ">") > 0)
COMPARISON(ge, value_compare(r, v, other, ">=") >= 0)

static const struct {
    const char *name;
    test_fn *call;
} tests[] = {
    {"defined", is_defined},
    {"undefined", is_undefined},
    {"none", is_none},
    {"string", is_string},
    {"number", is_number},
    {"integer", is_integer},
    {"float", is_float},
    {"boolean", is_boolean},
    {"true", is_true},
    {"false", is_false},
    {"mapping", is_mapping},
    {"sequence", is_sequence},
    {"iterable", is_iterable},
    {"callable", is_callable},
    {"odd", is_odd},
    {"even", is_even},
    {"divisibleby", is_divisible},
    {"lower", is_lower},
    {"upper", is_upper},
    {"sameas", is_same},
    {"escaped", is_escaped},
    {"in", is_in},
    {"test", is_test},
    {"filter", is_filter},
    {"eq", is_eq},
    {"equalto", is_eq},
    {"==", is_eq},
    {"ne", is_ne},
    {"!=", is_ne},
    {"lt", is_lt},
    {"lessthan", is_lt},
    {"<", is_lt},
    {"le", is_le},
    {"<=", is_le},
    {"gt", is_gt},
    {"greaterthan", is_gt},
    {">", is_gt},
    {"ge", is_ge},
    {">=", is_ge},
};

test_fn *test_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(tests); i++)
        if (strcmp(tests[i].name, name) == 0)
            return tests[i].call;
    return NULL;
}

bool test_apply(struct render *r, const char *name, struct value v, const struct args *args)
{
    test_fn *test = test_find(name);

    if (!test)
        render_fail(r, "there is no test named '%s'", name);
    render_work(r, 0);
    return test(r, v, args);
}
