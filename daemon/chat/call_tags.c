/*
 * Calls written as tags, <function=NAME><parameter=KEY>VALUE</parameter></function> and its kin:
 * each value becomes a member of a JSON object, of the type that the tool's schema gives it.
 */
#include <string.h>

#include "common/alloc.h"
#include "common/json.h"
#include "daemon/chat/python.h"
#include "daemon/chat/split.h"

enum {
    BEFORE_CALL, /* before call_open, or block_close */
    IN_NAME,
    BEFORE_KEY, /* before key_open, or call_close */
    IN_KEY,
    BEFORE_VALUE,
    IN_VALUE,
};

static struct view trimmed(struct view v)
{
    while (v.len && strchr(" \t\r\n", v.p[0]) && v.p[0]) {
        v.p++;
        v.len--;
    }
    while (v.len && strchr(" \t\r\n", v.p[v.len - 1]) && v.p[v.len - 1])
        v.len--;
    return v;
}

/* The schema of a parameter of the tool that is called, or NULL. */
static const json_t *schema_of(const struct chat_split *s, const char *key)
{
    const json_t *properties = NULL;
    json_t *tool;
    size_t i;

    json_array_foreach((json_t *)(uintptr_t)s->tools, i, tool)
    {
        const json_t *function = json_object_get(tool, "function");
        const char *name = json_string_value(json_object_get(function, "name"));

        if (name && strcmp(name, str_text(&s->name)) == 0)
            properties = json_object_get(json_object_get(function, "parameters"), "properties");
    }
    return json_object_get(properties, key);
}

/* "string", or a list of types one of which is. */
static bool says_string(const json_t *type)
{
    json_t *one;
    size_t i;

    if (json_is_string(type))
        return strcmp(json_string_value(type), "string") == 0;
    json_array_foreach((json_t *)(uintptr_t)type, i, one) if (says_string(one)) return true;
    return false;
}

/*
 * Text that is no string: JSON, or what Python makes of the value where it is sure to be meant, for
 * templates write earlier calls so.  NULL: it is neither.
 */
static json_t *literal(struct view text, const json_t *type)
{
    json_t *value = json_loadb(text.p, text.len, JSON_DECODE_ANY, NULL);

    if (!value &&
        (type || view_is(text, "True") || view_is(text, "False") || view_is(text, "None")))
        value = python_literal(text);
    return value;
}

/* Text as JSON: as it is where it is JSON and no string is wanted, else as a string. */
static void add_value(const struct chat_split *s, struct view text, struct str *out)
{
    const json_t *type = json_object_get(schema_of(s, str_text(&s->key)), "type");
    json_t *value = NULL;

    if (!s->is_string && (s->is_json || !says_string(type)))
        value = literal(trimmed(text), type);
    if (!value)
        value = json_text(text.p, text.len);
    json_dump_to(value, out);
    json_decref(value);
}

/* One newline after the opening tag and one before the closing one belong to the tags. */
static struct view without_frame(struct view v)
{
    if (v.len && v.p[0] == '\n') {
        v.p++;
        v.len--;
    }
    if (v.len && v.p[v.len - 1] == '\n')
        v.len--;
    if (view_starts(v, VIEW("<![CDATA[")) && v.len >= 12 && memcmp(v.p + v.len - 3, "]]>", 3) == 0)
        v = view_sub(v, 9, v.len - 12);
    return v;
}

static void give_member(struct chat_split *s, struct view value)
{
    struct str out = {0};
    json_t *key = json_text(str_text(&s->key), s->key.len);

    str_adds(&out, s->has_arguments ? ", " : "{");
    json_dump_to(key, &out);
    str_adds(&out, ": ");
    add_value(s, without_frame(value), &out);
    split_arguments(s, view_of_str(&out));
    s->has_arguments = true;
    json_decref(key);
    str_clear(&out);
}

/* Text up to one of the markers, trimmed, into `into`; the marker stays when keep. */
static bool read_until(struct chat_split *s, const char *const *markers, bool keep,
                       struct str *into)
{
    size_t which, safe;
    ptrdiff_t at = split_find(s, markers, &which, &safe);
    struct view text;

    if (at < 0)
        return false;
    text = trimmed(view_sub(split_held(s), 0, (size_t)at));
    str_truncate(into, 0);
    str_add(into, text.p, text.len);
    split_consume(s, (size_t)at + (keep ? 0 : strlen(markers[which])));
    return true;
}

static enum call_step end_call(struct chat_split *s, const struct tag_syntax *t)
{
    split_arguments(s, s->has_arguments ? VIEW("}") : VIEW("{}"));
    split_end_call(s);
    s->has_arguments = false;
    s->phase = BEFORE_CALL;
    return t->block_close ? CALL_MORE : CALL_DONE;
}

static enum call_step step_before_call(struct chat_split *s, const struct tag_syntax *t,
                                       bool at_end, bool *ret_moved)
{
    int is;

    split_skip_space(s);
    if (t->block_close) {
        is = split_accept(s, t->block_close, at_end);
        if (is > 0)
            return s->n_calls ? CALL_DONE : CALL_BAD;
        if (is == 0)
            return CALL_MORE;
    }
    if (t->call_open) {
        is = split_accept(s, t->call_open, at_end);
        if (is <= 0)
            return is == 0 ? CALL_MORE : CALL_BAD;
    }
    s->phase = IN_NAME;
    *ret_moved = true;
    return CALL_MORE;
}

static bool step_name(struct chat_split *s, const struct tag_syntax *t)
{
    const char *const closed[] = {t->name_close, NULL};
    const char *const open[] = {t->key_open, t->call_close, NULL};
    ptrdiff_t quote;

    if (!read_until(s, t->name_close ? closed : open, !t->name_close, &s->name))
        return false;
    quote = view_find(view_of_str(&s->name), VIEW("\""), 0);
    if (quote >= 0)
        str_truncate(&s->name, (size_t)quote);
    split_begin_call(s, view_of_str(&s->name));
    s->phase = BEFORE_KEY;
    return true;
}

static enum call_step step_before_key(struct chat_split *s, const struct tag_syntax *t, bool at_end,
                                      bool *ret_moved)
{
    int key, end;

    split_skip_space(s);
    if (!split_held(s).len)
        return CALL_MORE;
    key = split_accept(s, t->key_open, at_end);
    if (key > 0) {
        s->phase = IN_KEY;
        *ret_moved = true;
        return CALL_MORE;
    }
    end = split_accept(s, t->call_close, at_end);
    if (end > 0) {
        *ret_moved = true;
        return end_call(s, t);
    }
    return key == 0 || end == 0 ? CALL_MORE : CALL_BAD;
}

/* KEY" string="true, KEY" type="number: what stands after the quote says how the value is meant. */
static void take_key(struct chat_split *s)
{
    struct view key = view_of_str(&s->key), rest = {0};
    ptrdiff_t quote = view_find(key, VIEW("\""), 0);

    if (quote >= 0)
        rest = view_sub(key, (size_t)quote, key.len - (size_t)quote);
    s->is_string = view_has(rest, "string=\"true") || view_has(rest, "type=\"string");
    s->is_json = !s->is_string && (view_has(rest, "string=\"false") || view_has(rest, "type=\""));
    if (quote >= 0)
        str_truncate(&s->key, (size_t)quote);
    s->phase = BEFORE_VALUE;
}

static enum call_step step_before_value(struct chat_split *s, const struct tag_syntax *t,
                                        bool at_end, bool *ret_moved)
{
    int is;

    if (t->value_open) {
        split_skip_space(s);
        is = split_accept(s, t->value_open, at_end);
        if (is <= 0)
            return is == 0 ? CALL_MORE : CALL_BAD;
    }
    s->phase = IN_VALUE;
    *ret_moved = true;
    return CALL_MORE;
}

/* A value that is cut off is given as far as it goes: the call is not closed, so its JSON shows that. */
static bool step_value(struct chat_split *s, const struct tag_syntax *t, bool at_end)
{
    const char *const markers[] = {t->value_close, NULL};
    size_t which, safe;
    ptrdiff_t at = split_find(s, markers, &which, &safe);

    if (at < 0) {
        if (at_end && split_held(s).len) {
            give_member(s, split_held(s));
            split_consume(s, split_held(s).len);
        }
        return false;
    }
    give_member(s, view_sub(split_held(s), 0, (size_t)at));
    split_consume(s, (size_t)at + strlen(t->value_close));
    s->phase = BEFORE_KEY;
    return true;
}

enum call_step split_tag_call(struct chat_split *s, const struct tag_syntax *t, bool at_end)
{
    const char *const key_close[] = {t->key_close, NULL};

    for (;;) {
        enum call_step step = CALL_MORE;
        bool moved = false;

        switch (s->phase) {
        case BEFORE_CALL: step = step_before_call(s, t, at_end, &moved); break;
        case IN_NAME: moved = step_name(s, t); break;
        case BEFORE_KEY: step = step_before_key(s, t, at_end, &moved); break;
        case IN_KEY:
            moved = read_until(s, key_close, false, &s->key);
            if (moved)
                take_key(s);
            break;
        case BEFORE_VALUE: step = step_before_value(s, t, at_end, &moved); break;
        default: moved = step_value(s, t, at_end); break;
        }
        if (step != CALL_MORE || !moved)
            return step;
    }
}
