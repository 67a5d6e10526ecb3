/*
 * parser - shared by parser.c (expressions) and parser_stmt.c (statements).
 */
#pragma once

#include "daemon/template/ast.h"

struct parser {
    struct template *t;
    struct arena *arena;
    const struct token *at;
    int depth;
    int loops;       /* nesting of for: break and continue need one */
    bool saw_caller; /* since the macro that is being read began */
};

/* A growing list of nodes. */
struct nodes {
    const struct node **items;
    size_t n;
    size_t cap;
};

_Noreturn void parser_fail(const struct parser *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void parser_enter(struct parser *p); /* one level deeper, or fails */
void parser_leave(struct parser *p);

struct node *parser_node(struct parser *p, enum node_type type);
void nodes_add(struct parser *p, struct nodes *l, const struct node *n);

bool token_is(const struct parser *p, enum token_type type);
bool token_is_word(const struct parser *p, const char *word);      /* a name, this one */
bool token_is_word_next(const struct parser *p, const char *word); /* the token after */
bool token_accept(struct parser *p, enum token_type type);
bool token_accept_word(struct parser *p, const char *word);
void token_expect(struct parser *p, enum token_type type, const char *what);
const struct name *token_expect_name(struct parser *p, const char *what);

const struct node *parse_expression(struct parser *p);
/* Without a trailing "if": what stands after "in" of a for. */
const struct node *parse_or(struct parser *p);
/* One expression, or several with commas: a tuple.  cond: "a if b" is allowed. */
const struct node *parse_tuple(struct parser *p, bool cond);
const struct node *parse_unary(struct parser *p, bool with_filter);
/* name { "|" filter } as after "{% filter"; a is what it works on, NULL: the block. */
const struct node *parse_filters(struct parser *p, const struct node *a, bool first_is_named);
/* What set and for assign to. */
const struct node *parse_target(struct parser *p, bool with_attr);
void parse_call_args(struct parser *p, struct node *call);
