/*
 * Conformance kit, chat/templates: what a template makes of an answer with reasoning, content and
 * tool calls is what its model was taught to write, so the splitter must make that answer of it
 * again, whole and byte by byte.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/file.h"
#include "daemon/chat/chat.h"
#include "tests/golden/kit.h"

#define THOUGHT "I weigh the matter."
#define SAID    "Here is what I found out."

/* Two tools: texts that look like markup, numbers, lists and objects. */
static const char tools_text[] =
    "[{\"type\": \"function\", \"function\": {\"name\": \"get_weather\", \"description\": \"d\","
    " \"parameters\": {\"type\": \"object\", \"properties\": {\"city\": {\"type\": \"string\","
    " \"description\": \"d\"}, \"days\": {\"type\": \"integer\", \"description\": \"d\"}},"
    " \"required\": [\"city\"]}}}, {\"type\": \"function\", \"function\": {\"name\": "
    "\"write_file\","
    " \"description\": \"d\", \"parameters\": {\"type\": \"object\", \"properties\": {\"text\":"
    " {\"type\": \"string\", \"description\": \"d\"}, \"tags\": {\"type\": \"array\", \"items\":"
    " {\"type\": \"string\"}, \"description\": \"d\"}, \"deep\": {\"type\": \"object\","
    " \"properties\": {}, \"description\": \"d\"}, \"on\": {\"type\": \"boolean\","
    " \"description\": \"d\"}}, \"required\": []}}}]";

static const char *const arguments[] = {
    "{\"city\": \"Ulm\", \"days\": 3}",
    "{\"text\": \"if (a < b && c > \\\"d\\\") {\\n    return x;\\n}\", \"tags\": [\"one\", "
    "\"two\"],"
    " \"deep\": {\"k\": [1, 2.5, null]}, \"on\": true}",
};
static const char *const names[] = {"get_weather", "write_file"};

struct talk {
    const char *name;
    bool reasoning, content;
    unsigned n_calls;
};

static const struct talk talks[] = {
    {"content", false, true, 0},
    {"reasoning and content", true, true, 0},
    {"a call", false, false, 1},
    {"two calls", false, false, 2},
    {"content and a call", false, true, 1},
    {"reasoning and a call", true, false, 1},
};

static json_t *answer_of(const struct talk *talk)
{
    json_t *m = json_pack("{s:s, s:s}", "role", "assistant", "content", talk->content ? SAID : "");
    json_t *calls = json_array();

    if (talk->reasoning) {
        json_object_set_new(m, "reasoning_content", json_string(THOUGHT));
        json_object_set_new(m, "reasoning", json_string(THOUGHT));
        json_object_set_new(m, "thinking", json_string(THOUGHT));
    }
    for (unsigned i = 0; i < talk->n_calls; i++) {
        char id[] = "abcdefg00";

        id[8] = (char)('0' + i);
        json_array_append_new(calls,
                              json_pack("{s:s, s:s, s:{s:s, s:s}}", "id", id, "type", "function",
                                        "function", "name", names[i], "arguments", arguments[i]));
    }
    if (talk->n_calls)
        json_object_set(m, "tool_calls", calls);
    json_decref(calls);
    return m;
}

/* -- what comes out ------------------------------------------------------------------------ */

struct got {
    struct str content, reasoning;
    json_t *calls; /* [[name, arguments as text], ...] */
    struct str open;
    char *name;
};

static void on_event(void *arg, const struct chat_event *e)
{
    struct got *g = arg;

    switch (e->kind) {
    case CHAT_CONTENT: str_add(&g->content, e->text.p, e->text.len); break;
    case CHAT_REASONING: str_add(&g->reasoning, e->text.p, e->text.len); break;
    case CHAT_CALL:
        g->name = xstrdup(e->name);
        str_truncate(&g->open, 0);
        break;
    case CHAT_ARGUMENTS: str_add(&g->open, e->text.p, e->text.len); break;
    case CHAT_CALL_END:
        json_array_append_new(g->calls, json_pack("[s, s]", g->name, str_text(&g->open)));
        free(g->name);
        g->name = NULL;
        break;
    }
}

static void got_clear(struct got *g)
{
    str_clear(&g->content);
    str_clear(&g->reasoning);
    str_clear(&g->open);
    json_decref(g->calls);
    free(g->name);
}

static struct got split(const struct chat_template *t, struct view prompt, struct view answer,
                        const json_t *tools, size_t step)
{
    struct chat_split_options o = {.reasoning = true, .tools = tools, .prompt = prompt};
    struct got g = {.calls = json_array()};
    struct chat_split *s = chat_split_create(t, &o, on_event, &g);

    for (size_t at = 0; at < answer.len; at += step)
        chat_split_feed(s, view_sub(answer, at, MIN(step, answer.len - at)));
    chat_split_finish(s);
    chat_split_destroy(s);
    return g;
}

static struct view trimmed(const struct str *s)
{
    struct view v = view_of_str(s);

    while (v.len && strchr(" \n", v.p[0]))
        v = view_sub(v, 1, v.len - 1);
    while (v.len && strchr(" \n", v.p[v.len - 1]))
        v.len--;
    return v;
}

static bool calls_are(const json_t *calls, unsigned n)
{
    bool same = json_array_size(calls) == n;

    for (unsigned i = 0; same && i < n; i++) {
        json_t *call = json_array_get(calls, i);
        json_t *want = json_loads(arguments[i], 0, NULL);
        json_t *got = json_loads(json_string_value(json_array_get(call, 1)), 0, NULL);

        same = strcmp(json_string_value(json_array_get(call, 0)), names[i]) == 0 &&
               json_equal(got, want);
        json_decref(want);
        json_decref(got);
    }
    return same;
}

static bool same(const struct got *g, const struct talk *talk)
{
    return view_is(trimmed(&g->content), talk->content ? SAID : "") &&
           view_is(trimmed(&g->reasoning), talk->reasoning ? THOUGHT : "") &&
           calls_are(g->calls, talk->n_calls);
}

/* -- what goes in -------------------------------------------------------------------------- */

/* The conversation up to the answer, or with it (consumed); false: the template cannot. */
static bool render(const struct chat_template *t, json_t *take_answer, const json_t *tools,
                   struct str *ret)
{
    struct chat_options o = {.add_generation_prompt = !take_answer,
                             .bos_token = "<|bos|>",
                             .eos_token = "<|eos|>",
                             .now = {.tm_mday = 28, .tm_mon = 8, .tm_year = 126}};
    json_t *talk = json_pack("[{s:s, s:s}]", "role", "user", "content", "A question.");
    struct template_output out = {0};
    struct err err = {0};
    bool done;

    if (take_answer)
        json_array_append_new(talk, take_answer);
    done = chat_render(t, talk, tools, &o, &out, &err) == 0;
    if (done)
        str_add(ret, out.text.p, out.text.len);
    template_output_clear(&out);
    json_decref(talk);
    return done;
}

/* Where the two part, at the beginning of a tag that they part within. */
static size_t common_start(struct view a, struct view b)
{
    size_t n = 0, tag;

    while (n < a.len && n < b.len && a.p[n] == b.p[n])
        n++;
    for (tag = n; tag > 0 && n - tag < 32 && !strchr("<> \n", a.p[tag - 1]);)
        tag--;
    return tag > 0 && a.p[tag - 1] == '<' ? tag - 1 : n;
}

/* A model ends its turn with a token that is never shown: what stands for it here is no part of the answer. */
static void cut_end(struct view *answer)
{
    static const char *const ends[] = {
        "<|eos|>",
        "<|im_end|>",
        "<|eot_id|>",
        "<|eom_id|>",
        "<|end|>",
        "<end_of_turn>",
        "<turn|>",
        "<|call|>",
        "<|END_OF_TURN_TOKEN|>",
        "<|return|>",
        "<|eot|>",
        "[e~[",
        "<|end_of_text|>",
        "<|endoftext|>",
        "<|role_end|>",
        "<|eom|>",
        "<SPECIAL_12>",
        "<|message_sep|>",
        "<seed:eos>",
        "</assistant>",
        "<sep>",
        "<end_of_sentence>",
        "<|tool_response>",
        "<|end_of_msg|>",
        "<|assistant_end|>",
        "<｜end▁of▁sentence｜>",
        "<|hy_eos|>",
        " ",
        "\n",
        "</s>",
        "<|observation|>",
        "<|tool_calls|>",
        "<|START_THINKING|>",
        "<|END_THINKING|>",
        "<|CHATBOT_TOKEN|>",
        "<|START_OF_TURN_TOKEN|>",
        "<|hy_eos:opensource|>",
        "<｜hy_eos:opensource｜>",
    };
    bool cut = true;

    while (cut) {
        cut = false;
        for (size_t i = 0; i < ARRAY_LEN(ends) && !cut; i++) {
            struct view end = view_of(ends[i]);

            cut = answer->len >= end.len &&
                  memcmp(answer->p + answer->len - end.len, end.p, end.len) == 0;
            answer->len -= cut ? end.len : 0;
        }
    }
}

/* The answer comes apart as it should in pieces of every size; else, when tell, what came out is printed. */
static bool comes_apart(const struct chat_template *t, struct view prompt, struct view answer,
                        const json_t *tools, const struct talk *talk, bool tell)
{
    static const size_t steps[] = {SIZE_MAX, 7, 1};
    bool good = true;

    for (size_t i = 0; i < ARRAY_LEN(steps) && good; i++) {
        struct got g = split(t, prompt, answer, tools, steps[i]);

        good = same(&g, talk);
        if (!good && tell) {
            char *calls = json_dumps(g.calls, 0);

            printf("  %s, in pieces of %zu:\n    answer    %.*s\n    content   %s\n    reasoning "
                   "%s\n    calls     %s\n",
                   talk->name, MIN(steps[i], answer.len), (int)answer.len, answer.p,
                   str_text(&g.content), str_text(&g.reasoning), calls);
            free(calls);
        }
        got_clear(&g);
    }
    return good;
}

/* What was said beside a call may be written as a turn of its own, or as a thought: that is no answer to one prompt. */
static bool is_cut_in_two(const struct chat_template *t, struct view answer)
{
    return view_find(answer, view_of("<SPECIAL_11>"), 0) >= 0 ||
           strcmp(chat_template_dialect(t), "gptoss") == 0;
}

enum outcome { SAME, DIFFERENT, NOT_SHOWN };

/* A prompt may end in an open thought that the template leaves out of what was said before. */
static enum outcome try_talk(const struct chat_template *t, const struct talk *talk,
                             const json_t *tools)
{
    struct str prompt = {0}, full = {0};
    enum outcome r = NOT_SHOWN;
    struct view answer, before;
    size_t n;

    if (!render(t, NULL, tools, &prompt) || !render(t, answer_of(talk), tools, &full))
        goto out;
    n = common_start(view_of_str(&prompt), view_of_str(&full));
    before = view_sub(view_of_str(&prompt), 0, n);
    answer = view_sub(view_of_str(&full), n, full.len - n);
    cut_end(&answer);
    if ((talk->reasoning && view_find(answer, view_of(THOUGHT), 0) < 0) ||
        (talk->content && view_find(answer, view_of(SAID), 0) < 0) ||
        (talk->n_calls > 0 && view_find(answer, view_of(names[0]), 0) < 0) ||
        (talk->n_calls > 1 && view_find(answer, view_of(names[1]), 0) < 0) ||
        (talk->n_calls && talk->content && is_cut_in_two(t, answer)))
        goto out;
    r = comes_apart(t, view_of(""), answer, tools, talk, false) ||
                comes_apart(t, view_of_str(&prompt), answer, tools, talk, false) ||
                comes_apart(t, before, answer, tools, talk, true)
            ? SAME
            : DIFFERENT;
out:
    str_clear(&prompt);
    str_clear(&full);
    return r;
}

static void check_template(const char *kit_dir, const char *file, struct kit_result *r)
{
    char *path = xasprintf("%s/chat/templates/%s", kit_dir, file);
    json_t *tools = json_loads(tools_text, 0, NULL);
    struct chat_template *t = NULL;
    struct str text = {0}, shown = {0}, hidden = {0};
    struct err err = {0};
    bool bad = false;

    if (file_read_all(path, (size_t)1 << 20, &text, &err) < 0 ||
        chat_template_create(text.p, text.len, &t, &err) < 0) {
        kit_line(r, "dialects", file, KIT_FAIL, "%s", err.text);
        goto out;
    }
    for (size_t i = 0; i < ARRAY_LEN(talks); i++) {
        enum outcome o = try_talk(t, &talks[i], talks[i].n_calls ? tools : NULL);
        struct str *to = o == NOT_SHOWN ? &hidden : &shown;

        bad = bad || o == DIFFERENT;
        str_addf(to, "%s%s%s", to->len ? ", " : "", talks[i].name,
                 o == DIFFERENT ? " (WRONG)" : "");
    }
    kit_line(r, "dialects", file, bad ? KIT_FAIL : KIT_PASS, "%s: %s%s%s", chat_template_dialect(t),
             str_text(&shown), hidden.len ? "; not written: " : "", str_text(&hidden));
out:
    chat_template_destroy(t);
    str_clear(&text);
    str_clear(&shown);
    str_clear(&hidden);
    json_decref(tools);
    free(path);
}

int kit_dialects(const char *kit_dir, const char *match, struct kit_result *r)
{
    char **files = NULL;
    int n = kit_list(kit_dir, "chat/templates", ".jinja", match, &files);

    if (n < 0)
        return -ERR_NOT_FOUND;
    for (int i = 0; i < n; i++)
        check_template(kit_dir, files[i], r);
    kit_list_free(files, n);
    return 0;
}
