/*
 * ast - a parsed template: nodes, names, and what the lexer hands the parser.
 *
 * Names are interned: two names are equal when their pointers are.  Nodes
 * never change after parsing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/map.h"
#include "daemon/template/arena.h"
#include "daemon/template/value.h"

struct name {
    const char *p; /* terminated */
    size_t len;
};

/* clang-format off */
enum node_type {
    /* expressions             fields used */
    NODE_CONST,             /* constant */
    NODE_NAME,              /* name */
    NODE_LIST, NODE_TUPLE,  /* items */
    NODE_DICT,              /* items: key, value, key, value */
    NODE_NOT, NODE_NEG, NODE_POS,                     /* a */
    NODE_AND, NODE_OR,                                /* a b */
    NODE_ADD, NODE_SUB, NODE_MUL, NODE_DIV, NODE_FLOORDIV, NODE_MOD, NODE_POW, /* a b */
    NODE_CONCAT,            /* items */
    NODE_EQ, NODE_NE, NODE_LT, NODE_LE, NODE_GT, NODE_GE, NODE_IN, NODE_NOT_IN, /* a b; a NULL in a chain */
    NODE_CHAIN,             /* items: first operand, then comparisons without their a */
    NODE_COND,              /* a if b else c (c may be NULL) */
    NODE_ATTR,              /* a . name */
    NODE_ITEM,              /* a [ b ] */
    NODE_SLICE,             /* [ a : b : c ], each may be NULL; only as b of NODE_ITEM */
    NODE_CALL,              /* a ( args ) */
    NODE_FILTER,            /* a | name ( args ); a NULL: the text of a block */
    NODE_TEST,              /* a is name ( args ) */
    /* statements */
    NODE_BODY,              /* items, in the scope they stand in */
    NODE_TEXT,              /* constant: a string */
    NODE_PRINT,             /* a */
    NODE_IF,                /* items: condition, body, condition, body ...; b: else body */
    NODE_FOR,               /* target: a; b: iterable; c: condition; body; other: else; recursive */
    NODE_SET,               /* a: target; b: value */
    NODE_SET_BLOCK,         /* a: target; b: filter chain or NULL; body */
    NODE_MACRO,             /* name; params; body */
    NODE_CALL_BLOCK,        /* a: the call; params; body */
    NODE_FILTER_BLOCK,      /* b: filter chain; body */
    NODE_WITH,              /* items: target, value, ...; body */
    NODE_BREAK,
    NODE_CONTINUE,
};
/* clang-format on */

struct arg {
    const struct name *name; /* NULL: by position */
    const struct node *value;
    int stars; /* 1: *value, 2: **value */
};

struct param {
    const struct name *name;
    const struct node *otherwise; /* NULL: undefined when not given */
};

struct node {
    enum node_type type;
    int line;
    bool
        flag; /* NODE_FOR: recursive; NODE_TEST: negated; NODE_MACRO, _CALL_BLOCK: body uses caller */
    const struct name *name;
    const struct node *a;
    const struct node *b;
    const struct node *c;
    const struct node *body;
    const struct node *other;
    const struct node **items;
    size_t n_items;
    const struct arg *args;
    size_t n_args;
    const struct param *params;
    size_t n_params;
    struct value constant;
};

struct template
{
    struct arena arena;
    struct map *names; /* bytes → struct name, in the arena */
    const struct node *root;
    char *source; /* with "\n" line ends */
    size_t source_len;
};

const struct name *template_intern(struct template *t, const char *p, size_t len);

/* -- lexer --------------------------------------------------------------- */

/* clang-format off */
enum token_type {
    TOKEN_TEXT, TOKEN_PRINT_BEGIN, TOKEN_PRINT_END, TOKEN_BLOCK_BEGIN, TOKEN_BLOCK_END,
    TOKEN_NAME, TOKEN_INT, TOKEN_FLOAT, TOKEN_STRING,
    TOKEN_LPAREN, TOKEN_RPAREN, TOKEN_LBRACKET, TOKEN_RBRACKET, TOKEN_LBRACE, TOKEN_RBRACE,
    TOKEN_DOT, TOKEN_COMMA, TOKEN_COLON, TOKEN_PIPE, TOKEN_ASSIGN, TOKEN_TILDE,
    TOKEN_ADD, TOKEN_SUB, TOKEN_MUL, TOKEN_DIV, TOKEN_FLOORDIV, TOKEN_MOD, TOKEN_POW,
    TOKEN_EQ, TOKEN_NE, TOKEN_LT, TOKEN_LE, TOKEN_GT, TOKEN_GE,
    TOKEN_END,
};
/* clang-format on */

struct token {
    enum token_type type;
    int line;
    const char *p; /* the text; of a string, with its escapes resolved */
    size_t len;
};

/* All tokens of t->source, the last one TOKEN_END; in t->arena. */
struct token *template_lex(struct template *t, size_t *ret_n);

/* The whole template; fails by arena_fail. */
const struct node *template_parse_tokens(struct template *t, const struct token *tokens);
