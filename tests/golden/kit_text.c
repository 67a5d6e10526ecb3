/*
 * text/: prompts as text through tokenizer, model and back, and conversations
 * through the model's own template; see kit.h and the kit's README.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/str.h"
#include "daemon/chat/chat.h"
#include "tests/golden/kit.h"
#include "tests/golden/kit_engine.h"

#define SECTION "text"

struct text_run {
    struct kit_engine e;
    double gap; /* below it another choice is no fault */
    int n_cases, n_ids;
    char fault[200];
};

__attribute__((format(printf, 2, 3))) static void fault(struct text_run *t, const char *fmt, ...)
{
    va_list ap;

    if (t->fault[0])
        return;
    va_start(ap, fmt);
    vsnprintf(t->fault, sizeof t->fault, fmt, ap);
    va_end(ap);
}

static const char *string(const json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

/* The ids as bytes, special tokens as nothing, against the kit's hex. */
static void check_bytes(struct text_run *t, const json_t *c, const int32_t *ids, size_t n)
{
    struct str got = {0};
    size_t n_want = 0;
    uint8_t *want = kit_hex(string(c, "greedy_text_hex"), &n_want);

    for (size_t i = 0; i < n; i++)
        tokenizer_piece(model_tokenizer(t->e.m), ids[i], false, &got);
    if (!want || got.len != n_want || memcmp(str_text(&got), want, n_want) != 0)
        fault(t, "case %d: the text of the answer has other bytes", t->n_cases);
    free(want);
    str_clear(&got);
}

static void check_answer(struct text_run *t, const json_t *c, const int32_t *ids, size_t n)
{
    const json_t *gaps = json_object_get(c, "greedy_gap");
    size_t n_want = 0;
    int32_t *want = kit_ids(json_object_get(c, "greedy"), &n_want);
    int32_t *got = xcalloc(n_want + 1, sizeof *got);
    struct err err = {0};
    int k = kit_engine_greedy(&t->e, ids, n, n_want, true, got, &err);
    int i = 0;

    if (k < 0)
        fault(t, "case %d: %s", t->n_cases, err.text);
    while (i < k && got[i] == want[i])
        i++;
    if (k >= 0 && i < k && json_number_value(json_array_get(gaps, (size_t)i)) > t->gap)
        fault(t, "case %d: step %d gives %d, not %d", t->n_cases, i, got[i], want[i]);
    if (k >= 0 && i == k) {
        if ((size_t)k != n_want)
            fault(t, "case %d: the answer ends after %d ids, not %zu", t->n_cases, k, n_want);
        check_bytes(t, c, got, (size_t)k);
        t->n_ids += k;
    }
    free(got);
    free(want);
}

static void check_prompt(struct text_run *t, const json_t *c, struct view text)
{
    struct token_list got = {0};
    struct err err = {0};
    size_t n = 0;
    int32_t *want = kit_ids(json_object_get(c, "tokens"), &n);

    if (tokenizer_encode(model_tokenizer(t->e.m), text, true, true, &got, &err) < 0)
        fault(t, "case %d: %s", t->n_cases, err.text);
    else if (!want || got.n != n || memcmp(got.ids, want, n * sizeof *want) != 0)
        fault(t, "case %d: the prompt has other ids", t->n_cases);
    else
        check_answer(t, c, got.ids, got.n);
    token_list_clear(&got);
    free(want);
}

/* A leading BOS text is left to the vocabulary that adds one itself. */
static struct view without_bos(const struct text_run *t, struct view text, const char *bos)
{
    if (bos && *bos && tokenizer_add_bos(model_tokenizer(t->e.m)) &&
        view_starts(text, view_of(bos)))
        return view_sub(text, strlen(bos), text.len);
    return text;
}

static void check_chat(struct text_run *t, const json_t *file, const json_t *c)
{
    const char *want = string(c, "rendered");
    struct chat_options options = {.add_generation_prompt = true,
                                   .bos_token = string(file, "bos_token"),
                                   .eos_token = string(file, "eos_token")};
    struct template_output out = {0};
    struct chat_template *template = NULL;
    struct model_info info;
    struct err err = {0};
    int r;

    model_info(t->e.m, &info);
    r = chat_template_create(info.chat_template,
                             info.chat_template ? strlen(info.chat_template) : 0, &template, &err);
    if (r >= 0)
        r = chat_render(template, json_object_get(c, "messages"), NULL, &options, &out, &err);
    if (r < 0)
        fault(t, "case %d: %s", t->n_cases, err.text);
    else if (!want || !view_is(view_of_str(&out.text), want))
        fault(t, "case %d: the conversation is rendered otherwise", t->n_cases);
    else
        check_prompt(t, c, without_bos(t, view_of_str(&out.text), options.bos_token));
    template_output_clear(&out);
    chat_template_destroy(template);
}

/* The tolerance of a logit stands beside the model: 2 × max(10 × noise, 1e-3 × M). */
static double gap_of(const char *kit_dir, const char *name)
{
    json_t *golden = kit_json(kit_dir, "models", name);
    double noise = json_number_value(json_object_get(golden, "ref_noise"));
    double most = json_number_value(json_object_get(golden, "max_abs_logit"));

    json_decref(golden);
    return 2 * MAX(10 * noise, 1e-3 * most);
}

static void run_file(const char *kit_dir, const char *name, struct kit_result *r)
{
    json_t *file = kit_json(kit_dir, SECTION, name);
    const json_t *completions = json_object_get(file, "completion");
    const json_t *chats = json_object_get(file, "chat");
    char *path = xasprintf("%s/%s/%s", kit_dir, SECTION, file ? string(file, "file") : "");
    struct text_run t = {.gap = gap_of(kit_dir, name)};
    struct err err = {0};
    int opened = kit_engine_open(&t.e, path, "f32", &err);

    if (opened < 0)
        fault(&t, "%s", err.text);
    else if (!model_tokenizer(t.e.m))
        fault(&t, "the model has no vocabulary");
    for (size_t i = 0; !t.fault[0] && i < json_array_size(completions); i++, t.n_cases++) {
        const json_t *c = json_array_get(completions, i);

        check_prompt(&t, c, view_of(string(c, "prompt")));
    }
    for (size_t i = 0; !t.fault[0] && i < json_array_size(chats); i++, t.n_cases++)
        check_chat(&t, file, json_array_get(chats, i));
    kit_engine_close(&t.e);
    if (opened == -ERR_UNSUPPORTED)
        kit_line(r, SECTION, name, KIT_SKIP, "%s", t.fault);
    else if (t.fault[0])
        kit_line(r, SECTION, name, KIT_FAIL, "%s", t.fault);
    else
        kit_line(r, SECTION, name, KIT_PASS, "%d texts, %d ids of answers", t.n_cases, t.n_ids);
    free(path);
    json_decref(file);
}

int kit_text(const char *kit_dir, const char *match, struct kit_result *r)
{
    char **names = NULL;
    int n = kit_list(kit_dir, SECTION, ".json", match, &names);

    if (n < 0)
        return -ERR_NOT_FOUND;
    for (int i = 0; i < n; i++)
        run_file(kit_dir, names[i], r);
    kit_list_free(names, n);
    return 0;
}
