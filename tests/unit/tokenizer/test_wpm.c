/* WordPiece. */
#include <check.h>
#include <stdlib.h>

#include "common/alloc.h"
#include "tests/unit/tokenizer/helper.h"

static const struct token words[] = {
    {"[PAD]", 0, TOKEN_CONTROL},
    {"[UNK]", 0, TOKEN_CONTROL},
    {"[CLS]", 0, TOKEN_CONTROL},
    {"[SEP]", 0, TOKEN_CONTROL},
    {"▁un", 0, 0},
    {"aff", 0, 0},
    {"able", 0, 0},
    {"▁,", 0, 0},
    {"▁world", 0, 0},
    {"▁a", 0, 0},
    {"a", 0, 0},
    {"▁世", 0, 0},
    {"▁W", 0, 0},
    {"▁é", 0, 0},
    {"▁e", 0, 0},
};

static struct tokenizer *small(struct gguf_writer *w)
{
    write_tokens(w, "bert", words, ARRAY_LEN(words));
    gguf_writer_u32(w, "tokenizer.ggml.cls_token_id", 2);
    gguf_writer_u32(w, "tokenizer.ggml.seperator_token_id", 3);
    gguf_writer_u32(w, "tokenizer.ggml.unknown_token_id", 1);
    return make_tokenizer(w);
}

START_TEST(words_are_cut_greedily_and_unknown_as_a_whole)
{
    struct gguf_writer w = {0};
    struct tokenizer *t = small(&w);

    expect_ids(t, VIEW("unaffable"), false, false, "4 5 6");
    expect_ids(t, VIEW("unaffablex world"), false, false, "1 8");
    expect_ids(t, VIEW("  world,world  "), false, false, "8 7 8");
    expect_ids(t, VIEW("世世a"), false, false, "11 11 9");
    expect_ids(t, VIEW(" \t\n"), false, false, "");
    tokenizer_destroy(t);
}
END_TEST

START_TEST(a_text_stands_between_its_begin_and_separator)
{
    struct gguf_writer w = {0};
    struct tokenizer *t = small(&w);

    expect_ids(t, VIEW("world"), true, false, "2 8 3");
    expect_ids(t, VIEW(""), true, false, "2 3");
    expect_text(t, "2 8 7 8 3", true, false, " world, world");
    tokenizer_destroy(t);
}
END_TEST

START_TEST(case_and_accents_go_unless_the_file_keeps_them)
{
    struct gguf_writer w = {0};
    struct tokenizer *t = small(&w);

    expect_ids(t, VIEW("WORLD É\xcc\x81"), false, false, "8 14");
    expect_ids(t, VIEW("wor\xc2\xadld\xef\xbf\xbd"), false, false, "8");
    tokenizer_destroy(t);
    gguf_writer_bool(&w, "tokenizer.ggml.normalizer.lowercase", false);
    t = small(&w);
    expect_ids(t, VIEW("W world é"), false, false, "12 8 13");
    tokenizer_destroy(t);
    gguf_writer_bool(&w, "tokenizer.ggml.normalizer.strip_accents", false);
    t = small(&w);
    expect_ids(t, VIEW("É"), false, false, "13");
    tokenizer_destroy(t);
}
END_TEST

START_TEST(a_million_of_one_letter_is_no_square)
{
    struct gguf_writer w = {0};
    struct tokenizer *t = small(&w);
    struct token_list ids = {0};
    struct err err = {0};
    char *text = repeat("a", 1 << 20);

    ck_assert_int_eq(tokenizer_encode(t, view_of(text), false, false, &ids, &err), 0);
    ck_assert_uint_eq(ids.n, 1 << 20);
    token_list_clear(&ids);
    free(text);
    tokenizer_destroy(t);
}
END_TEST

TCase *tcase_tokenizer_wpm(void);
TCase *tcase_tokenizer_wpm(void)
{
    TCase *tc = tcase_create("wpm");

    tcase_add_test(tc, words_are_cut_greedily_and_unknown_as_a_whole);
    tcase_add_test(tc, a_text_stands_between_its_begin_and_separator);
    tcase_add_test(tc, case_and_accents_go_unless_the_file_keeps_them);
    tcase_add_test(tc, a_million_of_one_letter_is_no_square);
    return tc;
}
