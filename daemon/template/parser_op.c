/* Operators in their order of precedence, tuples and targets.  See ast.h for the nodes. */
#include <string.h>

#include "daemon/template/parser.h"

static const struct node *binary(struct parser *p, enum node_type type, const struct node *a,
                                 const struct node *b)
{
    struct node *n = parser_node(p, type);

    n->a = a;
    n->b = b;
    return n;
}

static const struct node *parse_pow(struct parser *p)
{
    const struct node *n = parse_unary(p, true);

    while (token_accept(p, TOKEN_POW))
        n = binary(p, NODE_POW, n, parse_unary(p, true));
    return n;
}

static const struct node *parse_product(struct parser *p)
{
    const struct node *n = parse_pow(p);

    for (;;) {
        enum node_type type;

        switch (p->at->type) {
        case TOKEN_MUL: type = NODE_MUL; break;
        case TOKEN_DIV: type = NODE_DIV; break;
        case TOKEN_FLOORDIV: type = NODE_FLOORDIV; break;
        case TOKEN_MOD: type = NODE_MOD; break;
        default: return n;
        }
        p->at++;
        n = binary(p, type, n, parse_pow(p));
    }
}

static const struct node *parse_concat(struct parser *p)
{
    const struct node *first = parse_product(p);
    struct nodes items = {0};
    struct node *n;

    if (!token_is(p, TOKEN_TILDE))
        return first;
    n = parser_node(p, NODE_CONCAT);
    nodes_add(p, &items, first);
    while (token_accept(p, TOKEN_TILDE))
        nodes_add(p, &items, parse_product(p));
    n->items = items.items;
    n->n_items = items.n;
    return n;
}

static const struct node *parse_sum(struct parser *p)
{
    const struct node *n = parse_concat(p);

    while (token_is(p, TOKEN_ADD) || token_is(p, TOKEN_SUB)) {
        enum node_type type = token_accept(p, TOKEN_ADD) ? NODE_ADD : NODE_SUB;

        if (type == NODE_SUB)
            p->at++;
        n = binary(p, type, n, parse_concat(p));
    }
    return n;
}

/* False when no comparison stands here. */
static bool comparison(struct parser *p, enum node_type *ret_type)
{
    switch (p->at->type) {
    case TOKEN_EQ: *ret_type = NODE_EQ; break;
    case TOKEN_NE: *ret_type = NODE_NE; break;
    case TOKEN_LT: *ret_type = NODE_LT; break;
    case TOKEN_LE: *ret_type = NODE_LE; break;
    case TOKEN_GT: *ret_type = NODE_GT; break;
    case TOKEN_GE: *ret_type = NODE_GE; break;
    default:
        if (token_is_word(p, "in")) {
            *ret_type = NODE_IN;
        } else if (token_is_word(p, "not") && token_is_word_next(p, "in")) {
            *ret_type = NODE_NOT_IN;
            p->at++;
        } else {
            return false;
        }
    }
    p->at++;
    return true;
}

static const struct node *parse_compare(struct parser *p)
{
    const struct node *n = parse_sum(p);
    enum node_type type;
    struct nodes items = {0};
    struct node *chain;

    while (comparison(p, &type)) {
        if (!items.n)
            nodes_add(p, &items, n);
        nodes_add(p, &items, binary(p, type, NULL, parse_sum(p)));
    }
    if (items.n < 2)
        return n;
    if (items.n == 2)
        return binary(p, items.items[1]->type, items.items[0], items.items[1]->b);
    chain = parser_node(p, NODE_CHAIN);
    chain->items = items.items;
    chain->n_items = items.n;
    return chain;
}

static const struct node *parse_not(struct parser *p)
{
    struct node *n;

    if (!token_is_word(p, "not"))
        return parse_compare(p);
    parser_enter(p);
    n = parser_node(p, NODE_NOT);
    p->at++;
    n->a = parse_not(p);
    parser_leave(p);
    return n;
}

static const struct node *parse_and(struct parser *p)
{
    const struct node *n = parse_not(p);

    while (token_accept_word(p, "and"))
        n = binary(p, NODE_AND, n, parse_not(p));
    return n;
}

const struct node *parse_or(struct parser *p)
{
    const struct node *n = parse_and(p);

    while (token_accept_word(p, "or"))
        n = binary(p, NODE_OR, n, parse_and(p));
    return n;
}

const struct node *parse_expression(struct parser *p)
{
    const struct node *n;

    parser_enter(p);
    n = parse_or(p);
    while (token_is_word(p, "if")) {
        struct node *cond = parser_node(p, NODE_COND);

        p->at++;
        cond->a = n;
        cond->b = parse_or(p);
        if (token_accept_word(p, "else"))
            cond->c = parse_expression(p);
        n = cond;
    }
    parser_leave(p);
    return n;
}

static bool ends_tuple(const struct parser *p)
{
    switch (p->at->type) {
    case TOKEN_PRINT_END:
    case TOKEN_BLOCK_END:
    case TOKEN_RPAREN:
    case TOKEN_ASSIGN:
    case TOKEN_END: return true;
    default:
        return token_is_word(p, "in") || token_is_word(p, "recursive") || token_is_word(p, "if");
    }
}

const struct node *parse_tuple(struct parser *p, bool cond)
{
    const struct node *first = cond ? parse_expression(p) : parse_or(p);
    struct nodes items = {0};
    struct node *tuple;

    if (!token_is(p, TOKEN_COMMA))
        return first;
    tuple = parser_node(p, NODE_TUPLE);
    nodes_add(p, &items, first);
    while (token_accept(p, TOKEN_COMMA) && !ends_tuple(p))
        nodes_add(p, &items, cond ? parse_expression(p) : parse_or(p));
    tuple->items = items.items;
    tuple->n_items = items.n;
    return tuple;
}

static const struct node *parse_one_target(struct parser *p, bool with_attr)
{
    struct node *n = parser_node(p, NODE_NAME);
    struct node *attr;

    if (token_accept(p, TOKEN_LPAREN)) {
        const struct node *inside;

        parser_enter(p);
        inside = parse_target(p, false);
        parser_leave(p);
        token_expect(p, TOKEN_RPAREN, "')'");
        return inside;
    }
    n->name = token_expect_name(p, "a name to assign to");
    if (!with_attr || !token_accept(p, TOKEN_DOT))
        return n;
    attr = parser_node(p, NODE_ATTR);
    attr->a = n;
    attr->name = token_expect_name(p, "a name after '.'");
    return attr;
}

const struct node *parse_target(struct parser *p, bool with_attr)
{
    const struct node *first = parse_one_target(p, with_attr);
    struct nodes items = {0};
    struct node *tuple;

    if (!token_is(p, TOKEN_COMMA))
        return first;
    tuple = parser_node(p, NODE_TUPLE);
    nodes_add(p, &items, first);
    while (token_accept(p, TOKEN_COMMA) && !ends_tuple(p))
        nodes_add(p, &items, parse_one_target(p, with_attr));
    tuple->items = items.items;
    tuple->n_items = items.n;
    return tuple;
}
