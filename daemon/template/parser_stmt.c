/* Statements, and the two public functions around a parsed template.  See ast.h. */
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/utf8.h"
#include "daemon/template/parser.h"

#define MAX_SOURCE ((size_t)4 << 20)

static const struct node *parse_body(struct parser *p, const char *const *ends);

static const char *const no_end[] = {NULL};

/* The word of the block that starts at p->at, if it is on the list. */
static const char *block_word(const struct parser *p, const char *const *words)
{
    const struct token *t = p->at + 1;

    if (!token_is(p, TOKEN_BLOCK_BEGIN) || t->type != TOKEN_NAME)
        return NULL;
    for (; *words; words++)
        if (t->len == strlen(*words) && memcmp(t->p, *words, t->len) == 0)
            return *words;
    return NULL;
}

static void expect_block_end(struct parser *p)
{
    token_expect(p, TOKEN_BLOCK_END, "'%}'");
}

/* Steps over "{% word", or fails because the template ended before. */
static void expect_block(struct parser *p, const char *word)
{
    if (!token_is(p, TOKEN_BLOCK_BEGIN))
        parser_fail(p, "the template ends before '%s'", word);
    p->at++;
    if (!token_accept_word(p, word))
        parser_fail(p, "'%.*s' stands where '%s' was expected",
                    (int)(p->at->len < 40 ? p->at->len : 40), p->at->p, word);
}

/* Body up to "{% word %}", and over it. */
static const struct node *parse_block(struct parser *p, const char *word)
{
    const char *const ends[] = {word, NULL};
    const struct node *body = parse_body(p, ends);

    expect_block(p, word);
    expect_block_end(p);
    return body;
}

static const struct node *parse_if(struct parser *p)
{
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    struct node *n = parser_node(p, NODE_IF);
    struct nodes items = {0};

    for (;;) {
        nodes_add(p, &items, parse_tuple(p, true));
        expect_block_end(p);
        nodes_add(p, &items, parse_body(p, ends));
        if (block_word(p, ends) != ends[0])
            break;
        p->at += 2;
    }
    if (block_word(p, ends) == ends[1]) {
        p->at += 2;
        expect_block_end(p);
        n->b = parse_body(p, ends + 2);
    }
    expect_block(p, "endif");
    expect_block_end(p);
    n->items = items.items;
    n->n_items = items.n;
    return n;
}

static const struct node *parse_for(struct parser *p)
{
    static const char *const ends[] = {"else", "endfor", NULL};
    struct node *n = parser_node(p, NODE_FOR);

    n->a = parse_target(p, false);
    if (!token_accept_word(p, "in"))
        parser_fail(p, "for needs 'in'");
    n->b = parse_tuple(p, false);
    if (token_accept_word(p, "if"))
        n->c = parse_expression(p);
    n->flag = token_accept_word(p, "recursive");
    expect_block_end(p);
    p->loops++;
    n->body = parse_body(p, ends);
    p->loops--;
    if (block_word(p, ends) == ends[0]) {
        p->at += 2;
        expect_block_end(p);
        n->other = parse_body(p, ends + 1);
    }
    expect_block(p, "endfor");
    expect_block_end(p);
    return n;
}

static const struct node *parse_set(struct parser *p)
{
    struct node *n = parser_node(p, NODE_SET);

    n->a = parse_target(p, true);
    if (token_accept(p, TOKEN_ASSIGN)) {
        n->b = parse_tuple(p, true);
        expect_block_end(p);
        return n;
    }
    n->type = NODE_SET_BLOCK;
    if (token_is(p, TOKEN_PIPE))
        n->b = parse_filters(p, NULL, false);
    expect_block_end(p);
    n->body = parse_block(p, "endset");
    return n;
}

/* "(a, b=1)" of a macro or a call block. */
static void parse_params(struct parser *p, struct node *n)
{
    struct param *params = NULL;
    size_t count = 0, cap = 0;

    token_expect(p, TOKEN_LPAREN, "'('");
    while (!token_accept(p, TOKEN_RPAREN)) {
        struct param param = {0};

        if (count) {
            token_expect(p, TOKEN_COMMA, "',' or ')'");
            if (token_accept(p, TOKEN_RPAREN))
                break;
        }
        param.name = token_expect_name(p, "the name of a parameter");
        if (token_accept(p, TOKEN_ASSIGN))
            param.otherwise = parse_expression(p);
        else if (count && params[count - 1].otherwise)
            parser_fail(p, "a parameter without a default follows one with a default");
        if (count == cap) {
            cap = cap ? cap * 2 : 4;
            params = arena_grow(p->arena, params, count, cap, sizeof *params);
        }
        params[count++] = param;
    }
    n->params = params;
    n->n_params = count;
}

static const struct node *parse_macro(struct parser *p)
{
    struct node *n = parser_node(p, NODE_MACRO);
    bool outside = p->saw_caller;
    int loops = p->loops;

    p->saw_caller = false;
    p->loops = 0;
    n->name = token_expect_name(p, "the name of the macro");
    parse_params(p, n);
    expect_block_end(p);
    n->body = parse_block(p, "endmacro");
    n->flag = p->saw_caller;
    p->saw_caller = outside;
    p->loops = loops;
    return n;
}

static const struct node *parse_call_block(struct parser *p)
{
    struct node *n = parser_node(p, NODE_CALL_BLOCK);
    int loops = p->loops;

    if (token_is(p, TOKEN_LPAREN))
        parse_params(p, n);
    n->a = parse_expression(p);
    if (n->a->type != NODE_CALL)
        parser_fail(p, "call needs a call, like name()");
    expect_block_end(p);
    p->loops = 0;
    n->body = parse_block(p, "endcall");
    p->loops = loops;
    return n;
}

static const struct node *parse_filter_block(struct parser *p)
{
    struct node *n = parser_node(p, NODE_FILTER_BLOCK);

    n->b = parse_filters(p, NULL, true);
    expect_block_end(p);
    n->body = parse_block(p, "endfilter");
    return n;
}

static const struct node *parse_with(struct parser *p)
{
    struct node *n = parser_node(p, NODE_WITH);
    struct nodes items = {0};

    while (!token_is(p, TOKEN_BLOCK_END)) {
        if (items.n)
            token_expect(p, TOKEN_COMMA, "',' or '%}'");
        nodes_add(p, &items, parse_target(p, false));
        token_expect(p, TOKEN_ASSIGN, "'='");
        nodes_add(p, &items, parse_expression(p));
    }
    expect_block_end(p);
    n->body = parse_block(p, "endwith");
    n->items = items.items;
    n->n_items = items.n;
    return n;
}

/* The block is for training only: it marks what the assistant wrote. */
static const struct node *parse_generation(struct parser *p)
{
    expect_block_end(p);
    return parse_block(p, "endgeneration");
}

static const struct node *parse_jump(struct parser *p, enum node_type type)
{
    const struct node *n = parser_node(p, type);

    if (!p->loops)
        parser_fail(p, "'%s' stands outside of a for", type == NODE_BREAK ? "break" : "continue");
    expect_block_end(p);
    return n;
}

static const struct node *parse_break(struct parser *p)
{
    return parse_jump(p, NODE_BREAK);
}

static const struct node *parse_continue(struct parser *p)
{
    return parse_jump(p, NODE_CONTINUE);
}

static const struct {
    const char *word;
    const struct node *(*parse)(struct parser *p); /* p->at stands after the word */
} statements[] = {
    {"if", parse_if},           {"for", parse_for},
    {"set", parse_set},         {"macro", parse_macro},
    {"call", parse_call_block}, {"filter", parse_filter_block},
    {"with", parse_with},       {"generation", parse_generation},
    {"break", parse_break},     {"continue", parse_continue},
};

static const struct node *parse_statement(struct parser *p)
{
    static const char *const refused[] = {"block", "extends", "include",    "import",
                                          "from",  "do",      "autoescape", NULL};
    const char *word = block_word(p, refused);

    if (word)
        parser_fail(p, "'%s' is not supported in chat templates", word);
    p->at++;
    for (size_t i = 0; i < ARRAY_LEN(statements); i++)
        if (token_accept_word(p, statements[i].word))
            return statements[i].parse(p);
    parser_fail(p, "unknown tag '%.*s'", (int)(p->at->len < 40 ? p->at->len : 40), p->at->p);
}

static const struct node *parse_text(struct parser *p)
{
    struct node *n = parser_node(p, NODE_TEXT);
    struct text *t = ARENA_NEW(p->arena, struct text);

    *t = (struct text){.p = p->at->p, .len = p->at->len, .origin = TEMPLATE_ORIGIN_TRUSTED};
    n->constant = value_text(t);
    p->at++;
    return n;
}

static const struct node *parse_print(struct parser *p)
{
    struct node *n = parser_node(p, NODE_PRINT);

    p->at++;
    n->a = parse_tuple(p, true);
    token_expect(p, TOKEN_PRINT_END, "'}}'");
    return n;
}

/* Stops in front of a block whose word is in ends, and at the end. */
static const struct node *parse_body(struct parser *p, const char *const *ends)
{
    struct node *n = parser_node(p, NODE_BODY);
    struct nodes items = {0};

    parser_enter(p);
    while (!token_is(p, TOKEN_END) && !block_word(p, ends)) {
        if (token_is(p, TOKEN_TEXT))
            nodes_add(p, &items, parse_text(p));
        else if (token_is(p, TOKEN_PRINT_BEGIN))
            nodes_add(p, &items, parse_print(p));
        else
            nodes_add(p, &items, parse_statement(p));
    }
    parser_leave(p);
    n->items = items.items;
    n->n_items = items.n;
    return n;
}

const struct node *template_parse_tokens(struct template *t, const struct token *tokens)
{
    struct parser p = {.t = t, .arena = &t->arena, .at = tokens};

    return parse_body(&p, no_end);
}

const struct name *template_intern(struct template *t, const char *p, size_t len)
{
    struct name *name = map_get(t->names, p, len);
    char *copy;

    if (name)
        return name;
    name = ARENA_NEW(&t->arena, struct name);
    copy = arena_bytes(&t->arena, len + 1);
    memcpy(copy, p, len);
    copy[len] = '\0';
    *name = (struct name){copy, len};
    map_put(t->names, p, len, name);
    return name;
}

/* "\r\n" and "\r" become "\n", and one newline at the end goes, as in Jinja. */
static void copy_source(struct template *t, const char *text, size_t len)
{
    char *to = arena_bytes(&t->arena, len + 1);
    size_t n = 0;

    t->source = to;
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\r') {
            to[n++] = '\n';
            i += i + 1 < len && text[i + 1] == '\n';
        } else {
            to[n++] = text[i];
        }
    }
    n -= n > 0 && to[n - 1] == '\n';
    to[n] = '\0';
    t->source_len = n;
}

int template_parse(const char *text, size_t len, struct template **ret_tmpl, struct err *err)
{
    return template_parse_within(text, len, TEMPLATE_MEMORY_MOST, ret_tmpl, err);
}

int template_parse_within(const char *text, size_t len, size_t memory_bytes,
                          struct template **ret_tmpl, struct err *err)
{
    struct template *t;
    struct token *tokens;
    size_t n_tokens;

    if (len > MAX_SOURCE)
        return err_set(err, ERR_FORMAT, "the chat template is longer than %zu bytes", MAX_SOURCE);
    if (!utf8_valid(text, len))
        return err_set(err, ERR_FORMAT, "the chat template is not valid UTF-8");
    t = XNEW(struct template);
    arena_init(&t->arena, memory_bytes, err);
    t->names = map_create();
    if (ARENA_TRY(&t->arena)) {
        int r = t->arena.kind;

        template_destroy(t);
        return r;
    }
    copy_source(t, text, len);
    tokens = template_lex(t, &n_tokens);
    t->root = template_parse_tokens(t, tokens);
    t->arena.err = NULL;
    *ret_tmpl = t;
    return 0;
}

size_t template_memory_bytes(const struct template *t)
{
    /* an entry of map.h: its copy of the key, its slot at half load */
    return sizeof *t + arena_held_bytes(&t->arena) + map_count(t->names) * 96;
}

void template_destroy(struct template *t)
{
    if (!t)
        return;
    map_destroy(t->names, NULL);
    arena_clear(&t->arena);
    free(t);
}
