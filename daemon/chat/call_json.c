/* Calls written as JSON, read byte by byte so that arguments come out as they are made. */
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/json.h"
#include "daemon/chat/split.h"

enum {
    AT_OPEN,  /* before "{" */
    AT_KEY,   /* before a key, or "}" */
    IN_KEY,   /* after its quote */
    AT_COLON, /* before ":" */
    AT_VALUE, /* before a value */
    IN_VALUE,
    AFTER, /* before "," or "}" */
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool json_scan_byte(struct json_scan *scan, char c, bool *ret_before)
{
    *ret_before = false;
    if (scan->in_string) {
        if (scan->escaped)
            scan->escaped = false;
        else if (c == '\\')
            scan->escaped = true;
        else if (c == '"')
            scan->in_string = false;
        return !scan->in_string && scan->depth == 0;
    }
    if (scan->scalar) {
        *ret_before = is_space(c) || c == ',' || c == '}' || c == ']';
        return *ret_before;
    }
    switch (c) {
    case '"': scan->in_string = true; break;
    case '{':
    case '[': scan->depth++; break;
    case '}':
    case ']':
        if (scan->depth == 0) { /* closes what it stands in: there is no value */
            *ret_before = true;
            return true;
        }
        scan->depth--;
        return scan->depth == 0;
    default: scan->scalar = scan->depth == 0 && !is_space(c); break;
    }
    return false;
}

void call_json_reset(struct call_json *j)
{
    j->state = AT_OPEN;
    j->value = (struct json_scan){0};
    j->is_arguments = j->gave_arguments = j->comma = false;
    str_truncate(&j->key, 0);
    str_truncate(&j->text, 0);
}

bool call_json_is_open(const struct call_json *j)
{
    return j->state != AT_OPEN;
}

void call_json_clear(struct call_json *j)
{
    str_clear(&j->key);
    str_clear(&j->text);
}

/* A JSON value that must be a string, decoded; {NULL} when it is none. */
static char *decode_string(const struct str *text, size_t *ret_len)
{
    json_t *value = json_loadb(str_text(text), text->len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    char *copy = NULL;

    if (json_is_string(value)) {
        *ret_len = json_string_length(value);
        copy = xstrndup(json_string_value(value), *ret_len);
    }
    json_decref(value);
    return copy;
}

static bool key_is(const struct call_json *j, const char *key)
{
    return view_is(view_of_str(&j->key), key);
}

/* The value that just ended, which was collected in j->text. */
static bool take_value(struct chat_split *s, struct call_json *j)
{
    char *text;
    size_t len;

    if (j->is_arguments && s->in_call) {
        text = j->text.len ? decode_string(&j->text, &len) : NULL;
        if (text)
            split_arguments(s, (struct view){text, len});
        free(text);
        str_truncate(&j->text, 0);
        j->gave_arguments = true;
        return true;
    }
    if (!j->is_arguments &&
        (key_is(j, "name") || key_is(j, "tool_name") || key_is(j, "function"))) {
        text = decode_string(&j->text, &len);
        if (!text)
            return key_is(j, "function");
        str_truncate(&s->name, 0);
        str_adds(&s->name, text);
        free(text);
    }
    str_truncate(&j->text, 0);
    return true;
}

static bool is_offered(const struct chat_split *s, struct view name)
{
    json_t *tool;
    size_t i;

    json_array_foreach((json_t *)(uintptr_t)s->tools, i, tool)
    {
        const char *one =
            json_string_value(json_object_get(json_object_get(tool, "function"), "name"));

        if (one && view_is(name, one))
            return true;
    }
    return false;
}

/*
 * Name and arguments may come in either order: once the name is known the call begins.  Without a
 * marker an object with a name may be any answer in JSON: then the name must be a tool's (false).
 */
static bool begin_if_known(struct chat_split *s)
{
    if (s->in_call || !s->name.len)
        return true;
    if (s->bare && !is_offered(s, view_of_str(&s->name)))
        return false;
    split_begin_call(s, view_of_str(&s->name));
    return true;
}

/* Arguments that came before the name wait in s->key. */
static void give_early_arguments(struct chat_split *s, struct call_json *j)
{
    if (!s->in_call || !s->key.len)
        return;
    str_truncate(&j->text, 0);
    if (s->key.p[0] == '"') {
        size_t len;
        char *text = decode_string(&s->key, &len);

        if (text)
            split_arguments(s, (struct view){text, len});
        free(text);
    } else {
        split_arguments(s, view_of_str(&s->key));
    }
    j->gave_arguments = true;
    str_truncate(&s->key, 0);
}

/* Reads bytes of a value; returns how many of held; *ret_end when the value is over. */
static size_t read_value(struct chat_split *s, struct call_json *j, struct view held, bool *ret_end)
{
    size_t n = 0;
    bool before = false;

    *ret_end = false;
    while (n < held.len && !*ret_end) {
        *ret_end = json_scan_byte(&j->value, held.p[n], &before);
        n += !before;
    }
    if (j->collect)
        str_add(&j->text, held.p, n);
    else
        split_arguments(s, view_sub(held, 0, n));
    return n;
}

static enum call_step end_object(struct chat_split *s, struct call_json *j)
{
    split_consume(s, 1);
    if (!begin_if_known(s) || !s->in_call)
        return CALL_BAD;
    give_early_arguments(s, j);
    if (!j->gave_arguments)
        split_arguments(s, VIEW("{}"));
    j->state = AT_OPEN;
    return CALL_DONE;
}

/* One byte outside of values. */
static enum call_step between(struct chat_split *s, struct call_json *j, char c)
{
    if (j->state == IN_KEY) {
        if (c == '"')
            j->state = AT_COLON;
        else
            str_addc(&j->key, c);
    } else if (is_space(c)) {
        /* between tokens */
    } else if (j->state == AT_OPEN && c == '{') {
        j->state = AT_KEY;
    } else if (j->state == AT_KEY && c == '"') {
        str_truncate(&j->key, 0);
        j->state = IN_KEY;
    } else if (j->state == AT_COLON && c == ':') {
        j->state = AT_VALUE;
    } else if (j->state == AFTER && c == ',') {
        j->state = AT_KEY;
    } else if ((j->state == AT_KEY || j->state == AFTER) && c == '}') {
        return end_object(s, j);
    } else {
        return CALL_BAD;
    }
    split_consume(s, 1);
    return CALL_MORE;
}

/* Arguments of a known call come out as they are read, unless they are JSON inside a string. */
static void begin_value(const struct chat_split *s, struct call_json *j, char first)
{
    j->state = IN_VALUE;
    j->value = (struct json_scan){0};
    j->is_arguments = key_is(j, "arguments") || key_is(j, "parameters");
    j->collect = !j->is_arguments || !s->in_call || first == '"';
    str_truncate(&j->text, 0);
}

static enum call_step step_value(struct chat_split *s, struct call_json *j, struct view held)
{
    bool end;
    size_t n = read_value(s, j, held, &end);

    split_consume(s, n);
    if (!end)
        return CALL_MORE;
    if (j->is_arguments && !s->in_call) {
        str_truncate(&s->key, 0);
        str_add(&s->key, j->text.p, j->text.len);
        str_truncate(&j->text, 0);
    } else if (!take_value(s, j)) {
        return CALL_BAD;
    }
    j->state = AFTER;
    if (!begin_if_known(s))
        return CALL_BAD;
    give_early_arguments(s, j);
    return CALL_DONE;
}

/* Arguments in a string that was cut off: what there is of them. */
static void give_cut_arguments(struct chat_split *s, struct call_json *j)
{
    size_t len = 0;
    char *text;

    if (j->state != IN_VALUE || !j->is_arguments || !j->collect || !s->in_call)
        return;
    if (j->value.escaped)
        str_truncate(&j->text, j->text.len - 1);
    str_addc(&j->text, '"');
    text = decode_string(&j->text, &len);
    split_arguments(s, text ? (struct view){text, len} : view_of_str(&j->text));
    free(text);
}

enum call_step split_json_call(struct chat_split *s, bool at_end)
{
    struct call_json *j = &s->json;
    struct view held;

    while ((held = split_held(s)).len) {
        enum call_step step;

        if (j->state == AT_VALUE && !is_space(held.p[0]))
            begin_value(s, j, held.p[0]);
        if (j->state == IN_VALUE) {
            step = step_value(s, j, held);
            if (step == CALL_BAD)
                return step;
            continue;
        }
        if (j->state == AT_VALUE) {
            split_skip_space(s);
            continue;
        }
        step = between(s, j, held.p[0]);
        if (step != CALL_MORE)
            return step;
    }
    if (at_end)
        give_cut_arguments(s, j);
    return CALL_MORE;
}

enum call_step split_json_list(struct chat_split *s, bool at_end)
{
    const int phase = split_phase(s);

    for (;;) {
        enum call_step step;

        if (!s->json.comma) {
            step = split_json_call(s, at_end);
            if (step != CALL_DONE)
                return step;
            split_end_call(s);
            s->json.comma = true;
        }
        split_skip_space(s);
        if (split_accept(s, "]", at_end) > 0)
            return CALL_DONE;
        if (!split_held(s).len)
            return CALL_MORE;
        if (split_accept(s, ",", at_end) < 0)
            return CALL_BAD;
        split_again(s);
        split_set_phase(s, phase);
    }
}

enum call_step split_json_block(struct chat_split *s, const char *close, bool at_end)
{
    enum { FIRST, LIST, CLOSE };
    enum call_step step;

    if (split_phase(s) == FIRST) {
        split_skip_space(s);
        switch (split_accept(s, "[", at_end)) {
        case 0: return CALL_MORE;
        case 1: split_set_phase(s, LIST); break;
        default: return CALL_BAD;
        }
    }
    if (split_phase(s) == LIST) {
        step = split_json_list(s, at_end);
        if (step != CALL_DONE || !close)
            return step;
        split_set_phase(s, CLOSE);
    }
    return split_close(s, close, at_end);
}

enum call_step split_json_arguments(struct chat_split *s, bool at_end)
{
    struct call_json *j = &s->json;
    struct view held;
    bool end;

    (void)at_end;
    if (j->state != IN_VALUE) {
        split_skip_space(s);
        held = split_held(s);
        if (!held.len)
            return CALL_MORE;
        if (held.p[0] != '{')
            return CALL_BAD;
        j->state = IN_VALUE;
        j->value = (struct json_scan){0};
        j->collect = false;
    }
    held = split_held(s);
    split_consume(s, read_value(s, j, held, &end));
    return end ? CALL_DONE : CALL_MORE;
}
