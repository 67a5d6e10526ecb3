/* SentencePiece's encoding by score. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "tests/unit/tokenizer/helper.h"

/* From 259 on. */
static const struct token words[] = {
    {"▁", -1, 0},
    {"a", -2, 0},
    {"b", -3, 0},
    {"c", -4, 0},
    {"ab", -5, 0},
    {"bc", -1, 0},
    {"▁a", -6, 0},
    {"abc", -9, 0},
    {"aa", -0.0f, 0},
    {"▁▁", 0, 0},
    {"<t>", 0, TOKEN_CONTROL},
    {"aaaa", 0, 0},
    {"é", -2, 0},
};

static struct tokenizer *small(struct gguf_writer *w)
{
    write_spm(w, words, ARRAY_LEN(words));
    return make_tokenizer(w);
}

START_TEST(the_highest_score_is_joined_first)
{
    struct gguf_writer w = {0};
    struct tokenizer *t;

    gguf_writer_bool(&w, "tokenizer.ggml.add_space_prefix", false);
    t = small(&w);
    expect_ids(t, VIEW("abc"), false, false, "266");
    expect_ids(t, VIEW("xbc"), false, false, "123 264");
    expect_ids(t, VIEW("ab"), false, false, "263");
    expect_ids(t, VIEW("aaa"), false, false, "267 260");
    tokenizer_destroy(t);
}
END_TEST

START_TEST(a_text_begins_with_a_space_and_so_does_what_follows_a_special_token)
{
    struct gguf_writer w = {0};
    struct tokenizer *t = small(&w);

    expect_ids(t, VIEW("a"), false, false, "265");
    expect_ids(t, VIEW("a a"), true, false, "1 265 265");
    expect_ids(t, VIEW(" a"), false, false, "268 260");
    expect_ids(t, VIEW("a<t>a"), false, true, "265 269 265");
    expect_ids(t, VIEW(""), false, false, "");
    expect_ids(t, VIEW(""), true, false, "1");
    tokenizer_destroy(t);
}
END_TEST

START_TEST(a_character_without_a_token_is_its_bytes)
{
    struct gguf_writer w = {0};
    struct tokenizer *t;

    gguf_writer_bool(&w, "tokenizer.ggml.add_space_prefix", false);
    t = small(&w);
    expect_ids(t, VIEW("é"), false, false, "271");
    expect_ids(t, VIEW("ü"), false, false, "198 191");
    expect_ids(t, VIEW("\xff\xfe"), false, false, "258 257");
    expect_ids(t, VIEW("a\xe4"), false, false, "260 231");
    expect_ids(t, VIEW("\n"), false, false, "13");
    tokenizer_destroy(t);
}
END_TEST

START_TEST(without_byte_tokens_there_is_the_unknown_token_or_an_error)
{
    static const struct token few[] = {{"<unk>", 0, TOKEN_UNKNOWN},
                                       {"<s>", 0, TOKEN_CONTROL},
                                       {"</s>", 0, TOKEN_CONTROL},
                                       {"a", 0, 0},
                                       {"▁", 0, 0}};
    struct gguf_writer w = {0};
    struct tokenizer *t;
    struct token_list ids = {0};
    struct err err = {0};

    write_tokens(&w, "llama", few, ARRAY_LEN(few));
    t = make_tokenizer(&w);
    expect_ids(t, VIEW("ax"), false, false, "4 3 0");
    tokenizer_destroy(t);
    write_tokens(&w, "llama", few + 3, 2);
    gguf_writer_bool(&w, "tokenizer.ggml.add_bos_token", false);
    t = make_tokenizer(&w);
    expect_ids(t, VIEW("a"), false, false, "1 0");
    tokenizer_destroy(t);
    write_tokens(&w, "llama", &(const struct token){"x", 0, 0}, 1);
    gguf_writer_bool(&w, "tokenizer.ggml.add_space_prefix", false);
    t = make_tokenizer(&w);
    /* The id 0 is the default of the unknown token, and here it is "x". */
    expect_ids(t, VIEW("y"), false, false, "0");
    ck_assert_int_eq(tokenizer_encode(t, VIEW("x"), false, false, &ids, &err), 0);
    token_list_clear(&ids);
    tokenizer_destroy(t);
}
END_TEST

START_TEST(words_are_joined_across_spaces_only_where_a_token_does_so)
{
    static const struct token more[] = {{"▁", -1, 0},  {"a▁", -2, 0}, {"a▁▁b", -3, 0},
                                        {"▁b", -4, 0}, {"a", -5, 0},  {"b", -5, 0}};
    struct gguf_writer w = {0};
    struct tokenizer *t;

    gguf_writer_bool(&w, "tokenizer.ggml.add_space_prefix", false);
    write_spm(&w, more, ARRAY_LEN(more));
    t = make_tokenizer(&w);
    expect_ids(t, VIEW("a  b"), false, false, "261");
    expect_ids(t, VIEW("a b a"), false, false, "260 264 259 263");
    tokenizer_destroy(t);
    gguf_writer_bool(&w, "tokenizer.ggml.add_space_prefix", false);
    write_spm(&w, more + 3, 3);
    t = make_tokenizer(&w);
    expect_ids(t, VIEW("a b b"), false, false, "260 259 259");
    tokenizer_destroy(t);
}
END_TEST

START_TEST(begin_and_end_are_added_as_the_file_says)
{
    struct gguf_writer w = {0};
    struct tokenizer *t;

    gguf_writer_bool(&w, "tokenizer.ggml.add_bos_token", false);
    gguf_writer_bool(&w, "tokenizer.ggml.add_eos_token", true);
    t = small(&w);
    expect_ids(t, VIEW("a"), true, false, "265 2");
    expect_ids(t, VIEW("a"), false, false, "265");
    ck_assert(!tokenizer_add_bos(t) && tokenizer_add_eos(t));
    tokenizer_destroy(t);
}
END_TEST

START_TEST(without_scores_there_is_no_tokenizer)
{
    struct gguf_writer w = {0};

    gguf_writer_string(&w, "tokenizer.ggml.model", "llama");
    gguf_writer_strings(&w, "tokenizer.ggml.tokens", (const char *const[]){"a"}, 1);
    expect_no_tokenizer(&w, ERR_FORMAT, "no scores");
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
    ck_assert_uint_le(ids.n, (1 << 20) / 4 + 3);
    token_list_clear(&ids);
    free(text);
    tokenizer_destroy(t);
}
END_TEST

TCase *tcase_tokenizer_spm(void);
TCase *tcase_tokenizer_spm(void)
{
    TCase *tc = tcase_create("spm");

    tcase_add_test(tc, the_highest_score_is_joined_first);
    tcase_add_test(tc, a_text_begins_with_a_space_and_so_does_what_follows_a_special_token);
    tcase_add_test(tc, a_character_without_a_token_is_its_bytes);
    tcase_add_test(tc, without_byte_tokens_there_is_the_unknown_token_or_an_error);
    tcase_add_test(tc, words_are_joined_across_spaces_only_where_a_token_does_so);
    tcase_add_test(tc, begin_and_end_are_added_as_the_file_says);
    tcase_add_test(tc, without_scores_there_is_no_tokenizer);
    tcase_add_test(tc, a_million_of_one_letter_is_no_square);
    return tc;
}
