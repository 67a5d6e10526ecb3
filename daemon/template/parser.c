/* Expressions, in Jinja's order of precedence.  See ast.h for the nodes. */
#include "daemon/template/parser.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 200

void parser_fail(const struct parser *p, const char *fmt, ...)
{
    char text[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    arena_fail(p->arena, ERR_FORMAT, "line %d of the chat template: %s", p->at->line, text);
}

void parser_enter(struct parser *p)
{
    if (++p->depth > MAX_DEPTH)
        parser_fail(p, "nested deeper than %d", MAX_DEPTH);
}

void parser_leave(struct parser *p)
{
    p->depth--;
}

struct node *parser_node(struct parser *p, enum node_type type)
{
    struct node *n = ARENA_NEW(p->arena, struct node);

    n->type = type;
    n->line = p->at->line;
    return n;
}

void nodes_add(struct parser *p, struct nodes *l, const struct node *n)
{
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 4;

        l->items = arena_grow(p->arena, l->items, l->n, cap, sizeof *l->items);
        l->cap = cap;
    }
    l->items[l->n++] = n;
}

/* -- tokens -------------------------------------------------------------- */

bool token_is(const struct parser *p, enum token_type type)
{
    return p->at->type == type;
}

static bool word_at(const struct token *t, const char *word)
{
    return t->type == TOKEN_NAME && t->len == strlen(word) && memcmp(t->p, word, t->len) == 0;
}

bool token_is_word(const struct parser *p, const char *word)
{
    return word_at(p->at, word);
}

bool token_is_word_next(const struct parser *p, const char *word)
{
    return p->at->type != TOKEN_END && word_at(p->at + 1, word);
}

bool token_accept(struct parser *p, enum token_type type)
{
    if (p->at->type != type)
        return false;
    if (type != TOKEN_END)
        p->at++;
    return true;
}

bool token_accept_word(struct parser *p, const char *word)
{
    if (!word_at(p->at, word))
        return false;
    p->at++;
    return true;
}

static _Noreturn void fail_expected(const struct parser *p, const char *what)
{
    if (token_is(p, TOKEN_END))
        parser_fail(p, "the template ends where %s was expected", what);
    parser_fail(p, "'%.*s' stands where %s was expected", (int)(p->at->len < 40 ? p->at->len : 40),
                p->at->p, what);
}

void token_expect(struct parser *p, enum token_type type, const char *what)
{
    if (!token_accept(p, type))
        fail_expected(p, what);
}

const struct name *token_expect_name(struct parser *p, const char *what)
{
    const struct token *t = p->at;

    token_expect(p, TOKEN_NAME, what);
    return template_intern(p->t, t->p, t->len);
}

/* -- constants ----------------------------------------------------------- */

static struct value text_constant(struct parser *p, const char *bytes, size_t len)
{
    struct text *t = ARENA_NEW(p->arena, struct text);

    *t = (struct text){.p = bytes, .len = len, .origin = TEMPLATE_ORIGIN_TRUSTED};
    return value_text(t);
}

static const struct node *constant(struct parser *p, struct value v)
{
    struct node *n = parser_node(p, NODE_CONST);

    n->constant = v;
    return n;
}

static struct value int_constant(const struct parser *p, const struct token *t)
{
    __int128 sum = 0;
    int base = 10;
    size_t i = 0;

    if (t->len > 2 && t->p[0] == '0') {
        char c = (char)(t->p[1] | 0x20);

        base = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 10;
        i = base == 10 ? 0 : 2;
    }
    for (; i < t->len; i++) {
        char c = (char)(t->p[i] | 0x20);
        int digit = t->p[i] >= '0' && t->p[i] <= '9' ? t->p[i] - '0'
                    : c >= 'a' && c <= 'f'           ? c - 'a' + 10
                                                     : 99;

        if (t->p[i] == '_')
            continue;
        if (digit >= base)
            parser_fail(p, "'%.*s' is no number", (int)(t->len < 40 ? t->len : 40), t->p);
        if (__builtin_mul_overflow(sum, (__int128)base, &sum) ||
            __builtin_add_overflow(sum, (__int128)digit, &sum))
            parser_fail(p, "a number is too large");
    }
    return value_int(sum);
}

static struct value float_constant(const struct parser *p, const struct token *t)
{
    char text[128];
    size_t n = 0;

    for (size_t i = 0; i < t->len; i++) {
        if (n + 1 >= sizeof text)
            parser_fail(p, "a number has too many digits");
        if (t->p[i] != '_')
            text[n++] = t->p[i];
    }
    text[n] = '\0';
    return value_float(strtod(text, NULL));
}

static const struct node *parse_string(struct parser *p)
{
    const struct token *t = p->at;
    size_t len = 0;
    char *joined;

    if (t[1].type != TOKEN_STRING) {
        const struct node *n = constant(p, text_constant(p, t->p, t->len));

        p->at++;
        return n;
    }
    for (const struct token *s = t; s->type == TOKEN_STRING; s++)
        len += s->len;
    joined = arena_bytes(p->arena, len);
    len = 0;
    for (; token_is(p, TOKEN_STRING); p->at++) {
        memcpy(joined + len, p->at->p, p->at->len);
        len += p->at->len;
    }
    return constant(p, text_constant(p, joined, len));
}

/* -- primary ------------------------------------------------------------- */

static const struct node *parse_list(struct parser *p)
{
    struct node *n = parser_node(p, NODE_LIST);
    struct nodes items = {0};

    while (!token_accept(p, TOKEN_RBRACKET)) {
        if (items.n) {
            token_expect(p, TOKEN_COMMA, "',' or ']'");
            if (token_accept(p, TOKEN_RBRACKET))
                break;
        }
        nodes_add(p, &items, parse_expression(p));
    }
    n->items = items.items;
    n->n_items = items.n;
    return n;
}

static const struct node *parse_dict(struct parser *p)
{
    struct node *n = parser_node(p, NODE_DICT);
    struct nodes items = {0};

    while (!token_accept(p, TOKEN_RBRACE)) {
        if (items.n) {
            token_expect(p, TOKEN_COMMA, "',' or '}'");
            if (token_accept(p, TOKEN_RBRACE))
                break;
        }
        nodes_add(p, &items, parse_expression(p));
        token_expect(p, TOKEN_COLON, "':'");
        nodes_add(p, &items, parse_expression(p));
    }
    n->items = items.items;
    n->n_items = items.n;
    return n;
}

static const struct node *parse_paren(struct parser *p)
{
    const struct node *n;

    if (token_accept(p, TOKEN_RPAREN))
        return parser_node(p, NODE_TUPLE);
    n = parse_tuple(p, true);
    token_expect(p, TOKEN_RPAREN, "')'");
    return n;
}

static const struct node *parse_name(struct parser *p)
{
    static const char *const constants[] = {"true", "True", "false", "False", "none", "None"};
    struct node *n;

    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (token_accept_word(p, constants[i]))
            return constant(p, i < 4 ? value_bool(i < 2) : value_none());
    if (token_is_word(p, "caller"))
        p->saw_caller = true;
    n = parser_node(p, NODE_NAME);
    n->name = token_expect_name(p, "a name");
    return n;
}

static const struct node *parse_primary(struct parser *p)
{
    const struct token *t = p->at;

    switch (t->type) {
    case TOKEN_NAME: return parse_name(p);
    case TOKEN_STRING: return parse_string(p);
    case TOKEN_INT: p->at++; return constant(p, int_constant(p, t));
    case TOKEN_FLOAT: p->at++; return constant(p, float_constant(p, t));
    case TOKEN_LPAREN: p->at++; return parse_paren(p);
    case TOKEN_LBRACKET: p->at++; return parse_list(p);
    case TOKEN_LBRACE: p->at++; return parse_dict(p);
    default: fail_expected(p, "an expression");
    }
}

/* -- postfix ------------------------------------------------------------- */

void parse_call_args(struct parser *p, struct node *call)
{
    struct arg *args = NULL;
    size_t n = 0, cap = 0;

    while (!token_accept(p, TOKEN_RPAREN)) {
        struct arg arg = {0};

        if (n) {
            token_expect(p, TOKEN_COMMA, "',' or ')'");
            if (token_accept(p, TOKEN_RPAREN))
                break;
        }
        if (token_accept(p, TOKEN_MUL))
            arg.stars = 1;
        else if (token_accept(p, TOKEN_POW))
            arg.stars = 2;
        else if (token_is(p, TOKEN_NAME) && p->at[1].type == TOKEN_ASSIGN) {
            arg.name = token_expect_name(p, "a name");
            p->at++;
        }
        arg.value = parse_expression(p);
        if (n == cap) {
            cap = cap ? cap * 2 : 4;
            args = arena_grow(p->arena, args, n, cap, sizeof *args);
        }
        args[n++] = arg;
    }
    call->args = args;
    call->n_args = n;
}

static const struct node *parse_call(struct parser *p, const struct node *callee)
{
    struct node *n = parser_node(p, NODE_CALL);

    n->a = callee;
    p->at++;
    parse_call_args(p, n);
    return n;
}

/* One index: an expression, or start:stop:step. */
static const struct node *parse_index(struct parser *p)
{
    const struct node *start = NULL;
    struct node *slice;

    if (!token_is(p, TOKEN_COLON)) {
        start = parse_expression(p);
        if (!token_is(p, TOKEN_COLON))
            return start;
    }
    slice = parser_node(p, NODE_SLICE);
    slice->a = start;
    p->at++;
    if (!token_is(p, TOKEN_COLON) && !token_is(p, TOKEN_RBRACKET) && !token_is(p, TOKEN_COMMA))
        slice->b = parse_expression(p);
    if (token_accept(p, TOKEN_COLON) && !token_is(p, TOKEN_RBRACKET) && !token_is(p, TOKEN_COMMA))
        slice->c = parse_expression(p);
    return slice;
}

static const struct node *parse_subscript(struct parser *p, const struct node *object)
{
    struct node *n;

    if (token_accept(p, TOKEN_DOT)) {
        if (token_is(p, TOKEN_INT)) {
            n = parser_node(p, NODE_ITEM);
            n->b = constant(p, int_constant(p, p->at));
            p->at++;
        } else {
            n = parser_node(p, NODE_ATTR);
            n->name = token_expect_name(p, "a name after '.'");
        }
        n->a = object;
        return n;
    }
    n = parser_node(p, NODE_ITEM);
    n->a = object;
    p->at++;
    n->b = parse_index(p);
    if (token_is(p, TOKEN_COMMA)) {
        struct node *tuple = parser_node(p, NODE_TUPLE);
        struct nodes items = {0};

        if (n->b->type == NODE_SLICE)
            parser_fail(p, "a slice cannot be one of several indices");
        nodes_add(p, &items, n->b);
        while (token_accept(p, TOKEN_COMMA) && !token_is(p, TOKEN_RBRACKET))
            nodes_add(p, &items, parse_expression(p));
        tuple->items = items.items;
        tuple->n_items = items.n;
        n->b = tuple;
    }
    token_expect(p, TOKEN_RBRACKET, "']'");
    return n;
}

static const struct node *parse_postfix(struct parser *p, const struct node *n)
{
    for (;;) {
        if (token_is(p, TOKEN_DOT) || token_is(p, TOKEN_LBRACKET))
            n = parse_subscript(p, n);
        else if (token_is(p, TOKEN_LPAREN))
            n = parse_call(p, n);
        else
            return n;
    }
}

/* Filters and tests may have dotted names. */
static const struct name *parse_dotted(struct parser *p, const char *what)
{
    const struct name *name = token_expect_name(p, what);

    while (token_accept(p, TOKEN_DOT)) {
        const struct name *part = token_expect_name(p, what);
        size_t len = name->len + 1 + part->len;
        char *joined = arena_bytes(p->arena, len);

        memcpy(joined, name->p, name->len);
        joined[name->len] = '.';
        memcpy(joined + name->len + 1, part->p, part->len);
        name = template_intern(p->t, joined, len);
    }
    return name;
}

const struct node *parse_filters(struct parser *p, const struct node *a, bool first_is_named)
{
    while (first_is_named || token_accept(p, TOKEN_PIPE)) {
        struct node *n = parser_node(p, NODE_FILTER);

        n->name = parse_dotted(p, "the name of a filter");
        n->a = a;
        if (token_accept(p, TOKEN_LPAREN))
            parse_call_args(p, n);
        a = n;
        first_is_named = false;
    }
    return a;
}

static bool starts_test_arg(const struct parser *p)
{
    switch (p->at->type) {
    case TOKEN_STRING:
    case TOKEN_INT:
    case TOKEN_FLOAT:
    case TOKEN_LBRACKET:
    case TOKEN_LBRACE: return true;
    case TOKEN_NAME:
        return !token_is_word(p, "else") && !token_is_word(p, "or") && !token_is_word(p, "and") &&
               !token_is_word(p, "if") && !token_is_word(p, "not") && !token_is_word(p, "in") &&
               !token_is_word(p, "recursive") && !token_is_word(p, "is");
    default: return false;
    }
}

static const struct node *parse_test(struct parser *p, const struct node *a)
{
    struct node *n = parser_node(p, NODE_TEST);

    n->a = a;
    n->flag = token_accept_word(p, "not");
    n->name = parse_dotted(p, "the name of a test");
    if (token_accept(p, TOKEN_LPAREN)) {
        parse_call_args(p, n);
    } else if (starts_test_arg(p)) {
        struct arg *arg = ARENA_NEW(p->arena, struct arg);

        parser_enter(p);
        arg->value = parse_postfix(p, parse_primary(p));
        parser_leave(p);
        n->args = arg;
        n->n_args = 1;
    }
    return n;
}

const struct node *parse_unary(struct parser *p, bool with_filter)
{
    const struct node *n;
    bool minus = token_is(p, TOKEN_SUB);

    parser_enter(p);
    if (minus || token_is(p, TOKEN_ADD)) {
        struct node *sign = parser_node(p, minus ? NODE_NEG : NODE_POS);

        p->at++;
        sign->a = parse_unary(p, false);
        n = sign;
    } else {
        n = parse_primary(p);
    }
    n = parse_postfix(p, n);
    while (with_filter) {
        if (token_is(p, TOKEN_PIPE))
            n = parse_filters(p, n, false);
        else if (token_accept_word(p, "is"))
            n = parse_test(p, n);
        else if (token_is(p, TOKEN_LPAREN))
            n = parse_call(p, n);
        else
            break;
    }
    parser_leave(p);
    return n;
}
