/*
 * Text to tokens, with Jinja's white space control: "-" and "+" at a tag,
 * trim_blocks (one newline after a block is dropped) and lstrip_blocks (blanks
 * before a block that starts a line are dropped).  See ast.h.
 */
#include <string.h>

#include "common/utf8.h"
#include "daemon/template/ast.h"
#include "daemon/template/text.h"

struct lexer {
    struct template *t;
    struct arena *arena;
    const char *p;
    size_t len;
    size_t at;
    int line;
    bool line_start; /* the last tag ended a line */
    struct token *tokens;
    size_t n;
    size_t cap;
};

static void add_token(struct lexer *l, enum token_type type, const char *p, size_t len)
{
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 256;

        l->tokens = arena_grow(l->arena, l->tokens, l->n, cap, sizeof *l->tokens);
        l->cap = cap;
    }
    l->tokens[l->n++] = (struct token){.type = type, .line = l->line, .p = p, .len = len};
}

static void count_lines(struct lexer *l, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        l->line += l->p[i] == '\n';
}

/* Steps over white space of any kind; at, as an offset. */
static size_t skip_space(const struct lexer *l, size_t at)
{
    while (at < l->len) {
        unsigned cp;
        size_t n = utf8_decode(l->p + at, l->len - at, &cp);

        if (!n || !text_is_space(cp))
            break;
        at += n;
    }
    return at;
}

static size_t strip_right(const struct lexer *l, size_t from, size_t to)
{
    while (to > from) {
        size_t at = to - 1;
        unsigned cp;

        while (at > from && to - at < 4 && ((unsigned char)l->p[at] & 0xC0) == 0x80)
            at--;
        if (utf8_decode(l->p + at, to - at, &cp) != to - at || !text_is_space(cp))
            break;
        to = at;
    }
    return to;
}

static bool starts_at(const struct lexer *l, size_t at, const char *what)
{
    size_t n = strlen(what);

    return at <= l->len && n <= l->len - at && memcmp(l->p + at, what, n) == 0;
}

/* Offset of the next "{{", "{%" or "{#", or len. */
static size_t find_tag(const struct lexer *l, size_t from)
{
    for (size_t at = from; at + 1 < l->len; at++) {
        const char *brace = memchr(l->p + at, '{', l->len - at - 1);

        if (!brace)
            break;
        at = (size_t)(brace - l->p);
        if (strchr("{%#", brace[1]) && brace[1])
            return at;
    }
    return l->len;
}

/* The text from..to in front of a tag; sign is what stands in the tag, or 0. */
static void add_text(struct lexer *l, size_t from, size_t to, char sign, bool is_print)
{
    size_t end = to;

    if (sign == '-') {
        end = strip_right(l, from, to);
    } else if (sign != '+' && !is_print) {
        size_t line = to;

        while (line > from && l->p[line - 1] != '\n')
            line--;
        if ((line > from || l->line_start) && skip_space(l, line) >= to)
            end = line;
    }
    if (end > from)
        add_token(l, TOKEN_TEXT, l->p + from, end - from);
    count_lines(l, from, to);
}

/* After the end of a block or comment: "-" was seen (skip all), or one newline. */
static void finish_tag(struct lexer *l, char sign)
{
    size_t from = l->at;

    if (sign == '-')
        l->at = skip_space(l, l->at);
    else if (sign != '+' && l->at < l->len && l->p[l->at] == '\n')
        l->at++;
    count_lines(l, from, l->at);
    l->line_start = l->at > 0 && l->p[l->at - 1] == '\n';
}

static char sign_at(const struct lexer *l, size_t at)
{
    return at < l->len && (l->p[at] == '-' || l->p[at] == '+') ? l->p[at] : 0;
}

static void lex_comment(struct lexer *l)
{
    size_t from = l->at;
    const char *end = memmem(l->p + from + 2, l->len - from - 2, "#}", 2);
    char sign;

    if (!end)
        arena_fail(l->arena, ERR_FORMAT, "line %d of the chat template: a comment has no end",
                   l->line);
    l->at = (size_t)(end - l->p) + 2;
    count_lines(l, from, l->at);
    sign = end > l->p + from + 2 ? sign_at(l, l->at - 3) : 0;
    finish_tag(l, sign);
}

/*
 * "{% raw %}": if the tag at l->at is one, adds the text up to endraw and
 * steps over both.
 */
static bool match_word_tag(const struct lexer *l, size_t at, const char *word, char *ret_sign,
                           size_t *ret_end)
{
    at += 2;
    if (sign_at(l, at))
        at++;
    at = skip_space(l, at);
    if (!starts_at(l, at, word))
        return false;
    at = skip_space(l, at + strlen(word));
    *ret_sign = sign_at(l, at);
    if (*ret_sign)
        at++;
    if (!starts_at(l, at, "%}"))
        return false;
    *ret_end = at + 2;
    return true;
}

static bool lex_raw(struct lexer *l)
{
    char sign;
    size_t from, at;

    if (!match_word_tag(l, l->at, "raw", &sign, &from))
        return false;
    count_lines(l, l->at, from);
    if (sign == '-') {
        at = skip_space(l, from);
        count_lines(l, from, at);
        from = at;
    }
    l->line_start = l->p[from - 1] == '\n';
    for (at = from; at < l->len; at++) {
        const char *tag = memmem(l->p + at, l->len - at, "{%", 2);
        size_t end;

        if (!tag)
            break;
        at = (size_t)(tag - l->p);
        if (!match_word_tag(l, at, "endraw", &sign, &end))
            continue;
        add_text(l, from, at, sign_at(l, at + 2), false);
        count_lines(l, at, end);
        l->at = end;
        finish_tag(l, sign);
        return true;
    }
    arena_fail(l->arena, ERR_FORMAT, "line %d of the chat template: raw has no endraw", l->line);
}

/* -- inside a tag -------------------------------------------------------- */

static bool is_name_char(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c >= 0x80 ||
           (c >= '0' && c <= '9');
}

static bool is_digit(const struct lexer *l, size_t at)
{
    return at < l->len && l->p[at] >= '0' && l->p[at] <= '9';
}

/* Digits with single underscores between them. */
static size_t skip_digits(const struct lexer *l, size_t at)
{
    while (is_digit(l, at) || (at < l->len && l->p[at] == '_' && is_digit(l, at + 1)))
        at++;
    return at;
}

static void lex_number(struct lexer *l)
{
    size_t from = l->at;
    enum token_type type = TOKEN_INT;
    size_t at;

    if (l->p[from] == '0' && from + 1 < l->len && strchr("xXoObB", l->p[from + 1]) &&
        l->p[from + 1]) {
        at = from + 2;
        while (at < l->len && is_name_char((unsigned char)l->p[at]))
            at++;
    } else {
        at = skip_digits(l, from);
        if (at < l->len && l->p[at] == '.' && is_digit(l, at + 1)) {
            type = TOKEN_FLOAT;
            at = skip_digits(l, at + 1);
        }
        if (at < l->len && (l->p[at] == 'e' || l->p[at] == 'E')) {
            size_t exp = at + 1;

            if (exp < l->len && (l->p[exp] == '+' || l->p[exp] == '-'))
                exp++;
            if (is_digit(l, exp)) {
                type = TOKEN_FLOAT;
                at = skip_digits(l, exp);
            }
        }
    }
    add_token(l, type, l->p + from, at - from);
    l->at = at;
}

static int hex_value(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Writes what the escape at p[*at] (after the backslash) stands for. */
static size_t unescape(struct lexer *l, const char *p, size_t len, size_t *at, char *out)
{
    static const char names[] = "abfnrtv'\"\\";
    static const char bytes[] = "\a\b\f\n\r\t\v'\"\\";
    char c = p[*at];
    const char *simple = strchr(names, c);
    size_t want = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    unsigned cp = 0;
    size_t n = 0;

    if (c == '\n') {
        ++*at;
        return 0;
    }
    if (c && simple) {
        ++*at;
        out[0] = bytes[simple - names];
        return 1;
    }
    if (c >= '0' && c <= '7') {
        while (n < 3 && *at < len && p[*at] >= '0' && p[*at] <= '7') {
            cp = cp * 8 + (unsigned)(p[(*at)++] - '0');
            n++;
        }
        return utf8_encode(cp, out);
    }
    if (!want) {
        out[0] = '\\';
        return 1;
    }
    for (++*at; n < want; n++, ++*at) {
        if (*at >= len || hex_value(p[*at]) < 0)
            arena_fail(l->arena, ERR_FORMAT,
                       "line %d of the chat template: \\%c needs %zu hexadecimal digits", l->line,
                       c, want);
        cp = cp * 16 + (unsigned)hex_value(p[*at]);
    }
    return utf8_encode(cp, out);
}

static void lex_string(struct lexer *l)
{
    char quote = l->p[l->at];
    size_t from = l->at + 1;
    size_t to = from;
    bool escaped = false;
    char *out;
    size_t n = 0;

    while (to < l->len && l->p[to] != quote) {
        if (l->p[to] == '\\') {
            escaped = true;
            to++;
        }
        to++;
    }
    if (to >= l->len)
        arena_fail(l->arena, ERR_FORMAT, "line %d of the chat template: a string has no end",
                   l->line);
    l->at = to + 1;
    if (!escaped) {
        add_token(l, TOKEN_STRING, l->p + from, to - from);
        count_lines(l, from, to);
        return;
    }
    /* No escape is longer than what it is written with, but \ooo: 4 bytes give at most 2. */
    out = arena_bytes(l->arena, to - from + 1);
    for (size_t at = from; at < to;) {
        if (l->p[at] != '\\') {
            out[n++] = l->p[at++];
        } else {
            at++;
            n += unescape(l, l->p, to, &at, out + n);
        }
    }
    add_token(l, TOKEN_STRING, out, n);
    count_lines(l, from, to);
}

static const struct {
    char text[3];
    unsigned char type;
} operators[] = {
    {"**", TOKEN_POW},   {"//", TOKEN_FLOORDIV}, {"==", TOKEN_EQ},      {"!=", TOKEN_NE},
    {"<=", TOKEN_LE},    {">=", TOKEN_GE},       {"+", TOKEN_ADD},      {"-", TOKEN_SUB},
    {"*", TOKEN_MUL},    {"/", TOKEN_DIV},       {"%", TOKEN_MOD},      {"<", TOKEN_LT},
    {">", TOKEN_GT},     {"=", TOKEN_ASSIGN},    {"~", TOKEN_TILDE},    {"|", TOKEN_PIPE},
    {".", TOKEN_DOT},    {",", TOKEN_COMMA},     {":", TOKEN_COLON},    {"(", TOKEN_LPAREN},
    {")", TOKEN_RPAREN}, {"[", TOKEN_LBRACKET},  {"]", TOKEN_RBRACKET}, {"{", TOKEN_LBRACE},
    {"}", TOKEN_RBRACE},
};

static enum token_type lex_operator(struct lexer *l)
{
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (starts_at(l, l->at, operators[i].text)) {
            add_token(l, (enum token_type)operators[i].type, l->p + l->at,
                      strlen(operators[i].text));
            l->at += strlen(operators[i].text);
            return (enum token_type)operators[i].type;
        }
    arena_fail(l->arena, ERR_FORMAT, "line %d of the chat template: unexpected character '%c'",
               l->line, l->p[l->at] >= ' ' ? l->p[l->at] : '?');
}

/* The end of the tag at l->at, if it is there: adds the token and trims what follows. */
static bool lex_tag_end(struct lexer *l, bool is_print)
{
    const char *end = is_print ? "}}" : "%}";
    char sign = sign_at(l, l->at);
    size_t at = l->at + (sign != 0);

    if (!starts_at(l, at, end) || (is_print && sign == '+'))
        return false;
    add_token(l, is_print ? TOKEN_PRINT_END : TOKEN_BLOCK_END, l->p + at, 2);
    l->at = at + 2;
    /* trim_blocks is for blocks: after a print only "-" trims. */
    finish_tag(l, is_print && sign != '-' ? '+' : sign);
    return true;
}

static void lex_inside(struct lexer *l, bool is_print)
{
    int open = 0; /* brackets: "}}" may close two of them */

    for (;;) {
        size_t from = l->at;
        unsigned char c;

        l->at = skip_space(l, l->at);
        count_lines(l, from, l->at);
        if (l->at >= l->len)
            arena_fail(l->arena, ERR_FORMAT, "line %d of the chat template: a tag has no end",
                       l->line);
        if (open == 0 && lex_tag_end(l, is_print))
            return;
        c = (unsigned char)l->p[l->at];
        if (is_digit(l, l->at)) {
            lex_number(l);
        } else if (is_name_char(c)) {
            from = l->at;
            while (l->at < l->len && is_name_char((unsigned char)l->p[l->at]))
                l->at++;
            add_token(l, TOKEN_NAME, l->p + from, l->at - from);
        } else if (c == '"' || c == '\'') {
            lex_string(l);
        } else {
            enum token_type type = lex_operator(l);

            open += type == TOKEN_LPAREN || type == TOKEN_LBRACKET || type == TOKEN_LBRACE;
            open -= type == TOKEN_RPAREN || type == TOKEN_RBRACKET || type == TOKEN_RBRACE;
            if (open < 0)
                arena_fail(l->arena, ERR_FORMAT,
                           "line %d of the chat template: '%c' closes nothing", l->line, c);
        }
    }
}

struct token *template_lex(struct template *t, size_t *ret_n)
{
    struct lexer l = {.t = t, .arena = &t->arena, .p = t->source, .len = t->source_len, .line = 1};

    l.line_start = true;
    while (l.at < l.len) {
        size_t tag = find_tag(&l, l.at);
        bool is_print = tag < l.len && l.p[tag + 1] == '{';

        if (tag == l.len) {
            add_token(&l, TOKEN_TEXT, l.p + l.at, l.len - l.at);
            break;
        }
        add_text(&l, l.at, tag, sign_at(&l, tag + 2), is_print);
        l.at = tag;
        if (l.p[tag + 1] == '#') {
            lex_comment(&l);
            continue;
        }
        if (!is_print && lex_raw(&l))
            continue;
        add_token(&l, is_print ? TOKEN_PRINT_BEGIN : TOKEN_BLOCK_BEGIN, l.p + tag, 2);
        l.at = tag + 2 + (sign_at(&l, tag + 2) != 0);
        lex_inside(&l, is_print);
    }
    add_token(&l, TOKEN_END, l.p + l.len, 0);
    *ret_n = l.n;
    return l.tokens;
}
