/*
 * Splitters: words of tests/golden/tokenizer/, and what no text may do to them.
 * words.jsonl has a line for a name and a text; names.jsonl, by llama.cpp, for all
 * names that cut a text alike, and has every name that is known.  Wide white
 * space in the two splitters of deepseek is left to words.jsonl, which reads it as
 * the models' own tokenizers do.
 */
#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/file.h"
#include "common/json.h"
#include "daemon/tokenizer/tokenizer_priv.h"
#include "tests/unit/tokenizer/helper.h"

#define GOLDEN "tests/golden/tokenizer/"

static struct pretoken *make(const char *name)
{
    const struct pre_name *pre = pretoken_find(view_of(name));
    struct pretoken *p = NULL;
    struct err err = {0};

    ck_assert_msg(pre != NULL, "'%s' is not known", name);
    ck_assert_msg(pretoken_create(pre, &p, &err) == 0, "%s", err.text);
    return p;
}

static json_t *split(const struct pretoken *p, struct view text)
{
    struct word_ends w = {0};
    struct err err = {0};
    struct work work = {.err = &err};
    json_t *words = json_array();
    size_t from = 0;

    ck_assert_msg(pretoken_split(p, text, &work, &w) == 0, "%s", err.text);
    for (size_t i = 0; i < w.n; i++) {
        json_array_append_new(words, json_stringn(text.p + from, w.ends[i] - from));
        from = w.ends[i];
    }
    free(w.ends);
    return words;
}

static void check_name(const char *name, const json_t *line)
{
    const json_t *text = json_object_get(line, "text");
    struct pretoken *p = make(name);
    json_t *got = split(p, (struct view){json_string_value(text), json_string_length(text)});

    if (!json_equal(got, json_object_get(line, "words"))) {
        char *said = json_dumps(got, 0), *want = json_dumps(json_object_get(line, "words"), 0);

        ck_abort_msg("%s: %s instead of %s", name, said, want);
    }
    json_decref(got);
    pretoken_destroy(p);
}

/* How many names the line is for. */
static int check_line(const json_t *line)
{
    const json_t *pre = json_object_get(line, "pre"), *name;
    size_t i;

    if (json_is_string(pre)) {
        check_name(json_string_value(pre), line);
        return 1;
    }
    json_array_foreach(pre, i, name)
    {
        check_name(json_string_value(name), line);
    }
    return (int)json_array_size(pre);
}

static const struct {
    const char *path;
    int least;
} goldens[] = {{GOLDEN "words.jsonl", 290}, {GOLDEN "names.jsonl", 89 * 29 - 6}};

START_TEST(texts_are_cut_as_the_golden_file_says)
{
    struct str file = {0};
    struct err err = {0};
    int n = 0;

    ck_assert_msg(file_read_all(goldens[_i].path, 1 << 20, &file, &err) == 0, "%s", err.text);
    for (char *line = file.p, *end; line && *line; line = end + 1) {
        json_t *value;

        end = strchr(line, '\n');
        ck_assert_ptr_nonnull(end);
        ck_assert_msg(json_parse(line, (size_t)(end - line), &value, &err) == 0, "%s", err.text);
        n += check_line(value);
        json_decref(value);
    }
    ck_assert_int_ge(n, goldens[_i].least);
    str_clear(&file);
}
END_TEST

static const char *const names[] = {
    "default",        "gpt-2",       "falcon",
    "starcoder",      "llama-bpe",   "jais-2",
    "qwen2",          "qwen35",      "youtu",
    "bloom",          "viking",      "deepseek-llm",
    "deepseek-coder", "deepseek-v3", "spark2_5",
    "tekken",         "gpt-4o",      "granite-embed-multi-97m",
    "chameleon",      "tiny_aya",    "kimi-k2",
    "superbpe",       "seed-coder",  "ufakzeka",
    "afmoe",          "laguna",      "exaone-moe",
    "gemma4",         "minicpm5",    "minimax-m2",
};

static const char *const units[] = {
    "a",    "A",         "é",   "7", " ",       "\n", "'", "\xe6\x97\xa5",
    "Aa1 ", "a\xcc\x81", " \t", "É", "\xd9\xa3"};

START_TEST(no_long_text_fails_or_takes_long)
{
    struct pretoken *p = make(names[_i]);

    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        char *text = repeat(units[i], 100000), *with_end = xasprintf("%sx", text);
        struct word_ends w = {0};
        struct err err = {0};
        struct work work = {.err = &err};

        ck_assert_msg(pretoken_split(p, view_of(with_end), &work, &w) == 0, "%s", err.text);
        ck_assert_uint_eq(w.ends[w.n - 1], strlen(with_end));
        free(w.ends);
        free(with_end);
        free(text);
    }
    pretoken_destroy(p);
}
END_TEST

START_TEST(words_end_between_characters_in_rising_order)
{
    struct pretoken *p = make(names[_i]);
    struct view text = VIEW(
        "aé\xe6\x97\xa5 12345\xd9\xa3\xd9\xa4 \xc2\xa0\xe2\x80\x8d\xf0\x9f\x98\x80\n\0'S \xcd\xb8");
    struct word_ends w = {0};
    struct err err = {0};
    struct work work = {.err = &err};

    ck_assert_int_eq(pretoken_split(p, text, &work, &w), 0);
    for (size_t i = 0; i < w.n; i++) {
        ck_assert_uint_gt(w.ends[i], i ? w.ends[i - 1] : 0);
        ck_assert(w.ends[i] == text.len || ((unsigned char)text.p[w.ends[i]] & 0xc0) != 0x80);
    }
    ck_assert_uint_eq(w.ends[w.n - 1], text.len);
    free(w.ends);
    w = (struct word_ends){0};
    ck_assert_int_eq(pretoken_split(p, VIEW(""), &work, &w), 0);
    ck_assert_uint_eq(w.n, 0);
    free(w.ends);
    ck_assert_uint_gt(pretoken_bytes(p), 100);
    pretoken_destroy(p);
}
END_TEST

START_TEST(a_name_that_is_not_known_is_not_guessed)
{
    ck_assert_ptr_null(pretoken_find(VIEW("gpt-3")));
    ck_assert_ptr_null(pretoken_find(VIEW("")));
    ck_assert_ptr_null(pretoken_find(VIEW("gpt-2 ")));
    ck_assert_ptr_nonnull(pretoken_find(VIEW("gpt-2")));
}
END_TEST

TCase *tcase_tokenizer_pretoken(void);
TCase *tcase_tokenizer_pretoken(void)
{
    TCase *tc = tcase_create("pretoken");

    tcase_add_loop_test(tc, texts_are_cut_as_the_golden_file_says, 0, (int)ARRAY_LEN(goldens));
    tcase_add_loop_test(tc, no_long_text_fails_or_takes_long, 0, ARRAY_LEN(names));
    tcase_add_loop_test(tc, words_end_between_characters_in_rising_order, 0, ARRAY_LEN(names));
    tcase_add_test(tc, a_name_that_is_not_known_is_not_guessed);
    return tc;
}
