/*
 * The grammar of rnbd.conf; see ini.h.  Lines come from here one by one, so that numbers and lengths are exact;
 * libinih splits what is between two section heads.
 */
#include <ini.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/file.h"
#include "common/ini.h"
#include "common/str.h"
#include "common/utf8.h"

#define FILE_MAX_BYTES ((size_t)1 << 20)
#define LINE_MAX_BYTES 8192

struct reading {
    const char *file;
    const char *rest; /* what has not been read yet */
    int line;
    char *section;
    char *name;
    ini_fn *handler;
    void *arg;
    struct err *err;
    int r; /* of the first error; nothing is read after it */
};

static pthread_once_t grammar_once = PTHREAD_ONCE_INIT;

/* A value may hold any character and ends with its line; nothing is cut. */
static void set_grammar(void)
{
    static char comment[] = "#";

    ini_allow_multiline = false;
    ini_allow_inline_comments = false;
    ini_allow_no_value = false;
    ini_allow_bom = false;
    ini_start_comment_prefixes = comment;
    ini_use_stack = false;
    ini_allow_realloc = false;
    ini_max_line = LINE_MAX_BYTES + 3;
    ini_initial_alloc = LINE_MAX_BYTES + 3;
}

/* Puts file and line before a sentence and keeps the rest of what is known. */
static void fail(struct reading *rd, const struct err *why)
{
    rd->r = err_set(rd->err, why->kind, "%s:%d: %s", rd->file, rd->line, why->text);
    if (rd->err) {
        memcpy(rd->err->param, why->param, sizeof why->param);
        memcpy(rd->err->data, why->data, sizeof why->data);
    }
}

static void fail_text(struct reading *rd, const char *sentence)
{
    struct err why;

    err_set(&why, ERR_INVALID, "%s", sentence);
    fail(rd, &why);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static struct view trimmed(struct view v)
{
    while (v.len && is_blank(v.p[0]))
        v = view_sub(v, 1, v.len);
    while (v.len && is_blank(v.p[v.len - 1]))
        v.len--;
    return v;
}

/* line is "[word]" or "[word NAME]". */
static void enter_section(struct reading *rd, struct view line)
{
    const char *end = memchr(line.p, ']', line.len);
    struct view inside, word;
    size_t n = 0;

    if (!end) {
        fail_text(rd, "the section head has no ']'");
        return;
    }
    if (end != line.p + line.len - 1) {
        fail_text(rd, "nothing may follow the ']' of a section head");
        return;
    }
    inside = trimmed(view_sub(line, 1, line.len - 2));
    while (n < inside.len && !is_blank(inside.p[n]))
        n++;
    word = view_sub(inside, 0, n);
    if (word.len == 0) {
        fail_text(rd, "the section head names no section");
        return;
    }
    free(rd->section);
    free(rd->name);
    rd->section = view_dup(word);
    rd->name = view_dup(trimmed(view_sub(inside, n, inside.len)));
}

/* What libinih would let pass or read in another way. */
static void check_pair(struct reading *rd, struct view line)
{
    const char *equals = memchr(line.p, '=', line.len);
    const char *colon = memchr(line.p, ':', line.len);

    if (!equals)
        fail_text(rd, "this is neither '[section]' nor 'key = value'; a comment starts with '#'");
    else if (equals == line.p)
        fail_text(rd, "there is no key before '='");
    else if (colon && colon < equals)
        fail_text(rd, "a key may not contain ':'");
}

static bool has_control(struct view line)
{
    for (size_t i = 0; i < line.len; i++) {
        unsigned char c = (unsigned char)line.p[i];

        if ((c < 0x20 && c != '\t') || c == 0x7F)
            return true;
    }
    return false;
}

/* Gives libinih the next pair; blank lines, comments and section heads are dealt with here. */
static char *next_line(char *buf, int cap, void *stream)
{
    struct reading *rd = stream;

    while (rd->r == 0 && *rd->rest) {
        const char *end = strchrnul(rd->rest, '\n');
        struct view line = trimmed((struct view){rd->rest, (size_t)(end - rd->rest)});

        rd->rest = *end ? end + 1 : end;
        rd->line++;
        if (line.len == 0 || line.p[0] == '#')
            continue;
        if (line.len > LINE_MAX_BYTES || line.len + 1 > (size_t)cap)
            fail_text(rd, "the line is too long; split it");
        else if (has_control(line))
            fail_text(rd, "the line holds a control character; remove it");
        else if (line.p[0] == '[')
            enter_section(rd, line);
        else
            check_pair(rd, line);
        if (rd->r < 0 || line.p[0] == '[')
            continue;
        memcpy(buf, line.p, line.len);
        buf[line.len] = '\0';
        return buf;
    }
    return NULL;
}

static int on_pair(void *user, const char *section, const char *key, const char *value)
{
    struct reading *rd = user;
    struct err why = {.kind = ERR_INTERNAL};
    struct ini_entry e = {
        .file = rd->file,
        .line = rd->line,
        .section = rd->section ? rd->section : "",
        .name = rd->name ? rd->name : "",
        .key = key,
        .value = value,
    };

    (void)section; /* libinih cuts long ones; the section in rd is whole */
    if (rd->handler(rd->arg, &e, &why) < 0)
        fail(rd, &why);
    return rd->r == 0;
}

int ini_read_text(const char *file, const char *text, ini_fn *handler, void *arg, struct err *err)
{
    struct reading rd = {.file = file, .rest = text, .handler = handler, .arg = arg, .err = err};
    int r;

    if (!utf8_valid(text, strlen(text)))
        return err_set(err, ERR_INVALID, "%s: the file is not valid UTF-8", file);
    if (strncmp(text, "\xEF\xBB\xBF", 3) == 0)
        rd.rest += 3;
    pthread_once(&grammar_once, set_grammar);
    r = ini_parse_stream(next_line, &rd, on_pair, &rd);
    if (r == -2 && rd.r == 0)
        rd.r = err_set(err, ERR_NOMEM, "%s: there is no memory left to read it", file);
    else if (r != 0 && rd.r == 0)
        fail_text(&rd, "this is not 'key = value'");
    free(rd.section);
    free(rd.name);
    return rd.r;
}

int ini_read(const char *path, ini_fn *handler, void *arg, struct err *err)
{
    struct str text = {0};
    int r = file_read_all(path, FILE_MAX_BYTES, &text, err);

    if (r < 0)
        return r;
    if (strlen(str_text(&text)) != text.len)
        r = err_set(err, ERR_INVALID, "%s: the file holds a zero byte, it is not text", path);
    else
        r = ini_read_text(path, str_text(&text), handler, arg, err);
    str_clear(&text);
    return r;
}
