/* The unigram model, and the table of replacements in front of it. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "tests/unit/tokenizer/helper.h"

static const struct token words[] = {
    {"<pad>", 0, TOKEN_CONTROL},
    {"</s>", 0, TOKEN_CONTROL},
    {"<unk>", 0, TOKEN_UNKNOWN},
    {"▁", -3, 0},
    {"a", -2, 0},
    {"b", -2, 0},
    {"ab", -3, 0},
    {"▁a", -5.5f, 0},
    {"aab", -20, 0},
    {"c", -7, 0},
    {"bc", -4, 0},
    {"<u>", -50, TOKEN_USER_DEFINED},
};

#define UNIT_ROOT  0u
#define UNIT_CHILD 0x141u
#define UNIT_VALUE 0x140u
#define N_UNITS    0x142u

/* A trie with one string, "A", for which "ab" stands. */
static void make_map(unsigned char map[4 + 4 * N_UNITS + 3])
{
    uint32_t units[N_UNITS] = {0};
    uint32_t bytes = sizeof units;

    units[UNIT_ROOT] = 0x100u << 10;
    units[UNIT_CHILD] = 'A' | 1u << 8 | (UNIT_CHILD ^ UNIT_VALUE) << 10;
    units[UNIT_VALUE] = 1u << 31 | 0;
    memcpy(map, &bytes, 4);
    memcpy(map + 4, units, sizeof units);
    memcpy(map + 4 + sizeof units, "ab", 3);
}

static struct tokenizer *small(struct gguf_writer *w)
{
    write_tokens(w, "t5", words, ARRAY_LEN(words));
    return make_tokenizer(w);
}

START_TEST(the_cut_with_the_highest_sum_is_taken)
{
    struct gguf_writer w = {0};
    struct tokenizer *t = small(&w);

    expect_ids(t, VIEW("ab"), false, false, "6");
    expect_ids(t, VIEW("aab"), false, false, "4 6");
    expect_ids(t, VIEW("abc"), false, false, "4 10");
    expect_ids(t, VIEW("ab"), true, false, "6 1");
    expect_ids(t, VIEW(""), true, false, "1");
    tokenizer_destroy(t);
}
END_TEST

START_TEST(unknown_characters_in_a_row_are_one_unknown_token)
{
    struct gguf_writer w = {0};
    struct tokenizer *t = small(&w);

    expect_ids(t, VIEW("aéüb"), false, false, "4 2 5");
    expect_ids(t, VIEW("\xff"), false, false, "2");
    tokenizer_destroy(t);
}
END_TEST

START_TEST(spaces_are_put_first_and_merged_as_the_file_says)
{
    struct gguf_writer w = {0};
    struct tokenizer *t = small(&w);

    expect_ids(t, VIEW(" a  b"), false, false, "3 4 3 3 5");
    tokenizer_destroy(t);
    gguf_writer_bool(&w, "tokenizer.ggml.add_space_prefix", true);
    t = small(&w);
    expect_ids(t, VIEW("ab"), false, false, "3 6");
    expect_text(t, "3 6", false, false, "ab");
    tokenizer_destroy(t);
    gguf_writer_bool(&w, "tokenizer.ggml.add_space_prefix", true);
    gguf_writer_bool(&w, "tokenizer.ggml.remove_extra_whitespaces", true);
    t = small(&w);
    expect_ids(t, VIEW("  b   b "), false, false, "3 5 3 5");
    tokenizer_destroy(t);
}
END_TEST

START_TEST(the_table_of_the_file_replaces_before_the_cut)
{
    unsigned char map[4 + 4 * N_UNITS + 3];
    struct gguf_writer w = {0};
    struct tokenizer *t;

    make_map(map);
    gguf_writer_array(&w, "tokenizer.ggml.precompiled_charsmap", _i ? GGUF_U8 : GGUF_I8, map,
                      sizeof map);
    t = small(&w);
    expect_ids(t, VIEW("A"), false, false, "6");
    expect_ids(t, VIEW("aA\0"), false, false, "4 6 2");
    expect_ids(t, VIEW("B"), false, false, "2");
    tokenizer_destroy(t);
}
END_TEST

START_TEST(a_damaged_table_is_refused_or_an_error_of_the_text)
{
    unsigned char map[4 + 4 * N_UNITS + 3];
    struct gguf_writer w = {0};
    struct tokenizer *t;
    struct token_list ids = {0};
    struct err err = {0};
    uint32_t far = 1u << 31 | 1000;

    make_map(map);
    for (size_t n = 0; n < sizeof map; n += n < 8 ? 1 : 101) {
        gguf_writer_array(&w, "tokenizer.ggml.precompiled_charsmap", GGUF_U8, map, n);
        write_tokens(&w, "t5", words, ARRAY_LEN(words));
        expect_no_tokenizer(&w, ERR_FORMAT, "precompiled_charsmap");
    }
    memcpy(map + 4 + 4 * UNIT_VALUE, &far, 4);
    gguf_writer_array(&w, "tokenizer.ggml.precompiled_charsmap", GGUF_U8, map, sizeof map);
    t = small(&w);
    expect_ids(t, VIEW("a"), false, false, "4");
    ck_assert_int_eq(tokenizer_encode(t, VIEW("A"), false, false, &ids, &err), -ERR_FORMAT);
    token_list_clear(&ids);
    tokenizer_destroy(t);
    gguf_writer_array(&w, "tokenizer.ggml.precompiled_charsmap", GGUF_F32, (const float[]){1}, 1);
    write_tokens(&w, "t5", words, ARRAY_LEN(words));
    expect_no_tokenizer(&w, ERR_FORMAT, "not an array of bytes");
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

TCase *tcase_tokenizer_ugm(void);
TCase *tcase_tokenizer_ugm(void)
{
    TCase *tc = tcase_create("ugm");

    tcase_add_test(tc, the_cut_with_the_highest_sum_is_taken);
    tcase_add_test(tc, unknown_characters_in_a_row_are_one_unknown_token);
    tcase_add_test(tc, spaces_are_put_first_and_merged_as_the_file_says);
    tcase_add_loop_test(tc, the_table_of_the_file_replaces_before_the_cut, 0, 2);
    tcase_add_test(tc, a_damaged_table_is_refused_or_an_error_of_the_text);
    tcase_add_test(tc, a_million_of_one_letter_is_no_square);
    return tc;
}
