/* Conformance kit, tok/: strings to ids and back, for each vocabulary and each name of a splitter. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/file.h"
#include "daemon/tokenizer/tokenizer.h"
#include "tests/golden/kit.h"

#define FILE_MAX ((size_t)64 << 20)

struct tally {
    int exact, total;
    int invalid_exact, invalid_total; /* of strings that are not UTF-8: for information */
    char first[160];                  /* what went wrong first */
};

static void note(struct tally *t, bool exact, bool counts, const char *what, const char *which)
{
    if (!counts) {
        t->invalid_exact += exact;
        t->invalid_total++;
        return;
    }
    t->exact += exact;
    t->total++;
    if (!exact && !t->first[0])
        snprintf(t->first, sizeof t->first, "; first: %s of %.100s", what, which);
}

static int open_tokenizer(const char *kit_dir, const char *file, struct gguf **ret_g,
                          struct tokenizer **ret_t, struct err *err)
{
    char *path = xasprintf("%s/tok/%s", kit_dir, file);
    int r = gguf_open(path, ret_g, err);

    free(path);
    if (r < 0)
        return r;
    r = tokenizer_create(*ret_g, ret_t, err);
    if (r < 0)
        gguf_close(*ret_g);
    return r;
}

/* Are the ids of text those of the JSON array? (null: the reference refuses; anything goes) */
static bool ids_are(const struct tokenizer *t, struct view text, bool add, bool parse,
                    const json_t *want, struct token_list *ids)
{
    struct err err;
    bool same;

    ids->n = 0;
    if (tokenizer_encode(t, text, add, parse, ids, &err) < 0)
        return json_is_null(want);
    same = json_is_null(want) || ids->n == json_array_size(want);
    for (size_t i = 0; same && !json_is_null(want) && i < ids->n; i++)
        same = ids->ids[i] == json_integer_value(json_array_get(want, i));
    return same;
}

static bool text_is(const struct tokenizer *t, const struct token_list *ids, bool remove, bool show,
                    const char *want_hex)
{
    struct str text = {0};
    size_t n = 0;
    uint8_t *want = kit_hex(want_hex, &n);
    bool same;

    tokenizer_decode(t, ids->ids, ids->n, remove, show, &text);
    same = want && text.len == n && memcmp(str_text(&text), want, n) == 0;
    free(want);
    str_clear(&text);
    return same;
}

static void check_case(const struct tokenizer *t, const json_t *c, struct tally *tally)
{
    const char *hex = json_string_value(json_object_get(c, "hex"));
    bool valid = json_is_true(json_object_get(c, "valid_utf8"));
    struct token_list ids = {0};
    size_t n = 0;
    uint8_t *bytes = kit_hex(hex, &n);
    struct view text = {(const char *)bytes, n};
    const char *detok;

    note(tally, ids_are(t, text, true, false, json_object_get(c, "ids_add"), &ids), valid,
         "ids_add", hex);
    note(tally, ids_are(t, text, false, true, json_object_get(c, "ids_parse"), &ids), valid,
         "ids_parse", hex);
    note(tally, ids_are(t, text, false, false, json_object_get(c, "ids"), &ids), valid, "ids", hex);
    if ((detok = json_string_value(json_object_get(c, "detok_hex"))))
        note(tally, text_is(t, &ids, false, false, detok), valid, "detok", hex);
    note(tally, ids_are(t, text, true, true, json_object_get(c, "ids_add_parse"), &ids), valid,
         "ids_add_parse", hex);
    if ((detok = json_string_value(json_object_get(c, "detok_add_parse_hex"))))
        note(tally, text_is(t, &ids, true, false, detok), valid, "detok_add_parse", hex);
    if ((detok = json_string_value(json_object_get(c, "detok_add_parse_special_hex"))))
        note(tally, text_is(t, &ids, false, true, detok), valid, "detok_add_parse_special", hex);
    token_list_clear(&ids);
    free(bytes);
}

static void run_vectors(const char *kit_dir, const char *name, struct kit_result *r)
{
    json_t *doc = kit_json(kit_dir, "tok/vectors", name), *c;
    struct gguf *g;
    struct tokenizer *t;
    struct tally tally = {0};
    struct err err = {0};
    size_t i;

    if (!doc) {
        kit_line(r, "tok/vectors", name, KIT_FAIL, "cannot be read");
        return;
    }
    if (open_tokenizer(kit_dir, json_string_value(json_object_get(doc, "vocab")), &g, &t, &err) <
        0) {
        kit_line(r, "tok/vectors", name, KIT_FAIL, "%s", err.text);
        json_decref(doc);
        return;
    }
    json_array_foreach(json_object_get(doc, "cases"), i, c) check_case(t, c, &tally);
    kit_line(r, "tok/vectors", name, tally.exact == tally.total ? KIT_PASS : KIT_FAIL,
             "%d of %d exact (and %d of %d that are not UTF-8)%s", tally.exact, tally.total,
             tally.invalid_exact, tally.invalid_total, tally.first);
    tokenizer_destroy(t);
    gguf_close(g);
    json_decref(doc);
}

/* One text of an .inp file against one line of its .out file. */
static bool line_is(const struct tokenizer *t, struct view text, const char *line)
{
    struct token_list ids = {0};
    struct err err;
    bool same = tokenizer_encode(t, text, false, false, &ids, &err) == 0;
    size_t n = 0;

    for (char *end; same; line = end) {
        long id = strtol(line, &end, 10);

        if (end == line)
            break;
        same = n < ids.n && ids.ids[n++] == id;
    }
    same = same && n == ids.n;
    token_list_clear(&ids);
    return same;
}

static void check_pairs(const struct tokenizer *t, const char *inp, const char *out,
                        struct tally *tally)
{
    static const char mark[] = "\n__ggml_vocab_test__\n";

    while (*inp) {
        const char *end = strstr(inp, mark), *line_end = strchr(out, '\n');
        struct view text = {inp, end ? (size_t)(end - inp) : strlen(inp)};
        char *line = xstrndup(out, line_end ? (size_t)(line_end - out) : strlen(out));

        note(tally, line_is(t, text, line), true, "the text", line);
        free(line);
        inp = end ? end + strlen(mark) : "";
        out = line_end ? line_end + 1 : "";
    }
}

static void run_pairs(const char *kit_dir, const char *name, struct kit_result *r)
{
    char *file = xasprintf("vocab/%.*s", (int)(strlen(name) - strlen(".inp")), name);
    char *inp_path = xasprintf("%s/tok/vocab/%s", kit_dir, name);
    char *out_path = xasprintf("%s/tok/%s.out", kit_dir, file);
    struct str inp = {0}, out = {0};
    struct gguf *g;
    struct tokenizer *t;
    struct tally tally = {0};
    struct err err = {0};

    if (file_read_all(inp_path, FILE_MAX, &inp, &err) < 0 ||
        file_read_all(out_path, FILE_MAX, &out, &err) < 0 ||
        open_tokenizer(kit_dir, file, &g, &t, &err) < 0) {
        kit_line(r, "tok/vocab", name, KIT_FAIL, "%s", err.text);
    } else {
        check_pairs(t, str_text(&inp), str_text(&out), &tally);
        kit_line(r, "tok/vocab", name, tally.exact == tally.total ? KIT_PASS : KIT_FAIL,
                 "%d of %d exact%s", tally.exact, tally.total, tally.first);
        tokenizer_destroy(t);
        gguf_close(g);
    }
    str_clear(&inp);
    str_clear(&out);
    free(inp_path);
    free(out_path);
    free(file);
}

/* The texts of an override file with one name of a splitter. */
static void run_pre(const struct gguf *g, const json_t *doc, const char *pre, const json_t *want,
                    struct kit_result *r)
{
    const char *vocab = json_string_value(json_object_get(doc, "vocab"));
    char *label = xasprintf("%s:%s", vocab, pre);
    struct tokenizer *t;
    struct token_list ids = {0};
    struct tally tally = {0};
    struct err err = {0};
    json_t *text;
    size_t i;

    if (tokenizer_create_pre(g, pre, &t, &err) < 0) {
        kit_line(r, "tok/pre", label, KIT_FAIL, "%s", err.text);
        free(label);
        return;
    }
    json_array_foreach(json_object_get(doc, "texts"), i, text)
    {
        struct view v = {json_string_value(text), json_string_length(text)};

        note(&tally, ids_are(t, v, false, false, json_array_get(want, i), &ids), true, "the text",
             v.p);
    }
    kit_line(r, "tok/pre", label, tally.exact == tally.total ? KIT_PASS : KIT_FAIL,
             "%d of %d exact%s", tally.exact, tally.total, tally.first);
    token_list_clear(&ids);
    tokenizer_destroy(t);
    free(label);
}

static void run_overrides(const char *kit_dir, const char *name, struct kit_result *r)
{
    json_t *doc = kit_json(kit_dir, "tok/pre", name), *group, *pre;
    struct gguf *g = NULL;
    struct err err = {.text = "cannot be read"};
    char *path = NULL;
    size_t i, k;

    if (doc)
        path = xasprintf("%s/tok/%s", kit_dir, json_string_value(json_object_get(doc, "vocab")));
    if (!doc || gguf_open(path, &g, &err) < 0) {
        kit_line(r, "tok/pre", name, KIT_FAIL, "%s", err.text);
    } else {
        json_array_foreach(json_object_get(doc, "groups"), i, group)
            json_array_foreach(json_object_get(group, "pre"), k, pre)
                run_pre(g, doc, json_string_value(pre), json_object_get(group, "ids"), r);
    }
    gguf_close(g);
    free(path);
    json_decref(doc);
}

int kit_tok(const char *kit_dir, const char *match, struct kit_result *r)
{
    static const struct {
        const char *section, *suffix;
        void (*run)(const char *kit_dir, const char *name, struct kit_result *r);
    } parts[] = {
        {"tok/vectors", ".json", run_vectors},
        {"tok/vocab", ".inp", run_pairs},
        {"tok/pre", ".json", run_overrides},
    };

    for (size_t p = 0; p < ARRAY_LEN(parts); p++) {
        char **names;
        int n = kit_list(kit_dir, parts[p].section, parts[p].suffix, match, &names);

        if (n < 0)
            return -1;
        for (int i = 0; i < n; i++)
            parts[p].run(kit_dir, names[i], r);
        kit_list_free(names, n);
    }
    return 0;
}
