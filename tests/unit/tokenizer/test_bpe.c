/* Byte-pair encoding by ranks. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "daemon/tokenizer/tokenizer_priv.h"
#include "tests/unit/tokenizer/helper.h"

START_TEST(every_byte_has_a_character_of_its_own_and_back)
{
    for (unsigned b = 0; b < 256; b++)
        ck_assert_int_eq(bpe_byte_of_char(bpe_char_of_byte(b)), (int)b);
    ck_assert_uint_eq(bpe_char_of_byte(' '), 0x120);
    ck_assert_uint_eq(bpe_char_of_byte('\n'), 0x10a);
    ck_assert_uint_eq(bpe_char_of_byte(0xad), 0x143);
    for (unsigned cp = 0x144; cp < 0x2000; cp++)
        ck_assert_int_eq(bpe_byte_of_char(cp), -1);
    ck_assert_int_eq(bpe_byte_of_char(' '), -1);
    ck_assert_int_eq(bpe_byte_of_char(0xa0), -1);
}
END_TEST

static const struct token words[] = {{"bc", 0, 0},  {"ab", 0, 0}, {"aa", 0, 0},
                                     {"abc", 0, 0}, {"Ġa", 0, 0}, {"aaaa", 0, 0}};
static const char *const ranks[] = {"b c", "a b", "a a", "Ġ a", "aa aa"};

static struct tokenizer *small(void)
{
    struct gguf_writer w = {0};

    write_bpe(&w, "gpt-2", words, ARRAY_LEN(words), ranks, ARRAY_LEN(ranks));
    return make_tokenizer(&w);
}

START_TEST(the_lowest_rank_is_joined_first_wherever_it_stands)
{
    struct tokenizer *t = small();

    expect_ids(t, VIEW("abc"), false, false, "97 256");
    expect_ids(t, VIEW("abx"), false, false, "257 120");
    expect_ids(t, VIEW(" a"), false, false, "260");
    expect_ids(t, VIEW(" ab"), false, false, "32 257");
    expect_ids(t, VIEW(""), false, false, "");
    tokenizer_destroy(t);
}
END_TEST

START_TEST(of_equal_pairs_the_leftmost_is_joined)
{
    struct tokenizer *t = small();

    expect_ids(t, VIEW("aaa"), false, false, "258 97");
    expect_ids(t, VIEW("aaaaa"), false, false, "261 97");
    expect_ids(t, VIEW("aaaaaaaa"), false, false, "261 261");
    tokenizer_destroy(t);
}
END_TEST

START_TEST(a_word_that_is_a_token_skips_the_merges_where_the_splitter_says_so)
{
    struct gguf_writer w = {0};
    struct tokenizer *t;

    write_bpe(&w, "llama-bpe", words, ARRAY_LEN(words), ranks, ARRAY_LEN(ranks));
    t = make_tokenizer(&w);
    expect_ids(t, VIEW("abc"), false, false, "259");
    expect_ids(t, VIEW("abcx"), false, false, "97 256 120");
    tokenizer_destroy(t);
}
END_TEST

START_TEST(the_same_merge_twice_keeps_its_first_rank)
{
    static const char *const twice[] = {"a b", "b c", "a b"};
    struct gguf_writer w = {0};
    struct tokenizer *t;

    write_bpe(&w, "gpt-2", words, ARRAY_LEN(words), twice, ARRAY_LEN(twice));
    t = make_tokenizer(&w);
    expect_ids(t, VIEW("abc"), false, false, "257 99");
    tokenizer_destroy(t);
}
END_TEST

START_TEST(a_merge_may_go_through_strings_that_are_no_tokens)
{
    static const char *const merges[] = {"x y", "xy z"};
    static const struct token more[] = {{"xyz", 0, 0}};
    struct gguf_writer w = {0};
    struct tokenizer *t;

    write_bpe(&w, "gpt-2", more, 1, merges, ARRAY_LEN(merges));
    t = make_tokenizer(&w);
    ck_assert_uint_eq(tokenizer_n_vocab(t), 257);
    expect_ids(t, VIEW("xyz"), false, false, "256");
    expect_ids(t, VIEW("xy"), false, false, "120 121");
    ck_assert_int_eq(tokenizer_find(t, VIEW("xy")), -1);
    tokenizer_destroy(t);
}
END_TEST

START_TEST(damaged_merges_join_nothing)
{
    static const char *const merges[] = {"", " ", "ab", "a ", " b", "a b c"};
    struct gguf_writer w = {0};
    struct tokenizer *t;

    write_bpe(&w, "gpt-2", words, ARRAY_LEN(words), merges, ARRAY_LEN(merges));
    t = make_tokenizer(&w);
    expect_ids(t, VIEW("abc"), false, false, "97 98 99");
    tokenizer_destroy(t);
}
END_TEST

/* They are texts, too, which nobody can count before; what they take is asked for all the same (helper.c). */
START_TEST(merges_of_strings_that_are_no_tokens_ask_for_their_room)
{
    enum { N = 5000 };
    char(*text)[32] = xreallocarray(NULL, N, sizeof *text);
    const char **merges = xreallocarray(NULL, N, sizeof *merges);
    struct gguf_writer w = {0};
    struct tokenizer *t;

    for (unsigned i = 0; i < N; i++) {
        snprintf(text[i], sizeof text[i], "left%u right%u", i, i);
        merges[i] = text[i];
    }
    write_bpe(&w, "gpt-2", NULL, 0, merges, N);
    t = make_tokenizer(&w);
    ck_assert_uint_gt(tokenizer_memory_bytes(t), 3 * N * sizeof "left0000");
    tokenizer_destroy(t);
    free(merges);
    free(text);
}
END_TEST

START_TEST(without_merges_there_is_no_tokenizer)
{
    struct gguf_writer w = {0};

    write_tokens(&w, "gpt2", words, ARRAY_LEN(words));
    expect_no_tokenizer(&w, ERR_FORMAT, "no merges");
    write_tokens(&w, "gpt2", words, ARRAY_LEN(words));
    gguf_writer_array(&w, "tokenizer.ggml.merges", GGUF_U32, (const uint32_t[]){1, 2}, 2);
    expect_no_tokenizer(&w, ERR_FORMAT, "not an array of strings");
}
END_TEST

START_TEST(bytes_that_are_not_utf8_become_the_replacement_character)
{
    struct tokenizer *t = small();

    expect_ids(t, VIEW("a\xff"), false, false, "97 239 191 189");
    expect_ids(t, VIEW("\xe4\xb8"), false, false, "239 191 189 239 191 189");
    expect_ids(t, VIEW("a\0b"), false, false, "97 0 98");
    tokenizer_destroy(t);
}
END_TEST

START_TEST(a_million_of_one_letter_is_no_square)
{
    struct tokenizer *t = small();
    struct token_list ids = {0};
    struct err err = {0};
    char *text = repeat("a", 1 << 20);

    ck_assert_int_eq(tokenizer_encode(t, view_of(text), false, false, &ids, &err), 0);
    ck_assert_uint_eq(ids.n, (1 << 20) / 4);
    token_list_clear(&ids);
    free(text);
    tokenizer_destroy(t);
}
END_TEST

/* Gemma 4: characters, spaces as U+2581, bytes where a character has no token. */
static const struct token gemma[] = {
    {"<pad>", 0, TOKEN_CONTROL},
    {"<eos>", 0, TOKEN_CONTROL},
    {"<bos>", 0, TOKEN_CONTROL},
    {"▁", 0, 0},
    {"a", 0, 0},
    {"b", 0, 0},
    {"▁a", 0, 0},
    {"\n", 0, 0},
    {"\n\n", 0, 0},
    {"<0xC3>", 0, TOKEN_BYTE},
    {"<0xA9>", 0, TOKEN_BYTE},
    {"▁▁", 0, 0},
};

START_TEST(a_raw_vocabulary_works_on_characters_with_bytes_to_fall_back_on)
{
    static const char *const merges[] = {"▁ ▁", "▁ a"};
    struct gguf_writer w = {0};
    struct tokenizer *t;

    write_tokens(&w, "gemma4", gemma, ARRAY_LEN(gemma));
    gguf_writer_strings(&w, "tokenizer.ggml.merges", merges, ARRAY_LEN(merges));
    gguf_writer_u32(&w, "tokenizer.ggml.bos_token_id", 2);
    gguf_writer_u32(&w, "tokenizer.ggml.eos_token_id", 1);
    gguf_writer_bool(&w, "tokenizer.ggml.add_bos_token", false);
    t = make_tokenizer(&w);
    expect_ids(t, VIEW("a ab"), true, false, "2 4 6 5");
    expect_ids(t, VIEW("é"), false, false, "9 10");
    expect_ids(t, VIEW("a\n\nb\n"), false, false, "4 8 5 7");
    expect_ids(t, VIEW("  a"), false, false, "11 4");
    expect_text(t, "2 4 6 9 10 11", false, false, "a aé  ");
    tokenizer_destroy(t);
}
END_TEST

TCase *tcase_tokenizer_bpe(void);
TCase *tcase_tokenizer_bpe(void)
{
    TCase *tc = tcase_create("bpe");

    tcase_add_test(tc, every_byte_has_a_character_of_its_own_and_back);
    tcase_add_test(tc, the_lowest_rank_is_joined_first_wherever_it_stands);
    tcase_add_test(tc, of_equal_pairs_the_leftmost_is_joined);
    tcase_add_test(tc, a_word_that_is_a_token_skips_the_merges_where_the_splitter_says_so);
    tcase_add_test(tc, the_same_merge_twice_keeps_its_first_rank);
    tcase_add_test(tc, a_merge_may_go_through_strings_that_are_no_tokens);
    tcase_add_test(tc, damaged_merges_join_nothing);
    tcase_add_test(tc, merges_of_strings_that_are_no_tokens_ask_for_their_room);
    tcase_add_test(tc, without_merges_there_is_no_tokenizer);
    tcase_add_test(tc, bytes_that_are_not_utf8_become_the_replacement_character);
    tcase_add_test(tc, a_million_of_one_letter_is_no_square);
    tcase_add_test(tc, a_raw_vocabulary_works_on_characters_with_bytes_to_fall_back_on);
    return tc;
}
