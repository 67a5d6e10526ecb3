/* The vocabulary of a file: what is read, what is refused. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "tests/unit/tokenizer/helper.h"

static const struct token few[] = {{"<unk>", 0, TOKEN_UNKNOWN},    {"<s>", 0, TOKEN_CONTROL},
                                   {"</s>", 0, TOKEN_CONTROL},     {"a", -1, 0},
                                   {"<x>", 0, TOKEN_USER_DEFINED}, {"<0x0A>", 0, TOKEN_BYTE},
                                   {"u", 0, TOKEN_UNUSED}};

START_TEST(a_file_without_a_vocabulary_has_no_tokenizer_and_that_is_no_error)
{
    struct gguf_writer w = {0};

    gguf_writer_string(&w, "tokenizer.ggml.model", _i ? "no_vocab" : "none");
    ck_assert_ptr_null(make_tokenizer(&w));
}
END_TEST

START_TEST(texts_types_and_ids_are_those_of_the_file)
{
    struct gguf_writer w = {0};
    struct tokenizer *t;

    write_tokens(&w, "llama", few, ARRAY_LEN(few));
    t = make_tokenizer(&w);
    ck_assert_uint_eq(tokenizer_n_vocab(t), ARRAY_LEN(few));
    for (size_t i = 0; i < ARRAY_LEN(few); i++) {
        ck_assert(view_is(tokenizer_text(t, (int32_t)i), few[i].text));
        ck_assert_int_eq(tokenizer_find(t, view_of(few[i].text)), (int)i);
        ck_assert_int_eq((int)tokenizer_type(t, (int32_t)i),
                         few[i].type ? few[i].type : TOKEN_NORMAL);
    }
    ck_assert_int_eq(tokenizer_find(t, VIEW("b")), -1);
    ck_assert_int_eq(tokenizer_find(t, VIEW("")), -1);
    ck_assert_uint_gt(tokenizer_memory_bytes(t), 7 * (1 + 4 + 2 + 4));
    tokenizer_destroy(t);
}
END_TEST

START_TEST(ids_outside_the_vocabulary_are_harmless)
{
    static const int32_t ids[] = {-1, INT32_MIN, 7, INT32_MAX};
    struct gguf_writer w = {0};
    struct tokenizer *t;
    struct str out = {0};

    write_tokens(&w, "llama", few, ARRAY_LEN(few));
    t = make_tokenizer(&w);
    ck_assert_uint_eq(tokenizer_text(t, ids[_i]).len, 0);
    ck_assert(!tokenizer_is_eog(t, ids[_i]));
    ck_assert_int_eq((int)tokenizer_type(t, ids[_i]), TOKEN_UNKNOWN);
    tokenizer_piece(t, ids[_i], true, &out);
    tokenizer_decode(t, &ids[_i], 1, true, true, &out);
    ck_assert_uint_eq(out.len, 0);
    str_clear(&out);
    tokenizer_destroy(t);
}
END_TEST

static const char *const id_keys[] = {
    "tokenizer.ggml.bos_token_id",     "tokenizer.ggml.eos_token_id",
    "tokenizer.ggml.unknown_token_id", "tokenizer.ggml.eot_token_id",
    "tokenizer.ggml.eom_token_id",     "tokenizer.ggml.fim_pad_token_id",
    "tokenizer.ggml.prefix_token_id",  "tokenizer.ggml.seperator_token_id",
};

START_TEST(an_id_beyond_the_vocabulary_is_refused_by_its_key)
{
    static const int64_t bad[] = {7, 1000, 0x7fffffff, 0xffffffff};

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct gguf_writer w = {0};

        write_tokens(&w, "llama", few, ARRAY_LEN(few));
        gguf_writer_u32(&w, id_keys[_i], (uint32_t)bad[i]);
        expect_no_tokenizer(&w, ERR_FORMAT, id_keys[_i]);
    }
}
END_TEST

START_TEST(begin_and_end_are_what_the_file_says_or_the_kinds_own)
{
    struct gguf_writer w = {0};
    struct tokenizer *t;

    write_tokens(&w, "llama", few, ARRAY_LEN(few));
    t = make_tokenizer(&w);
    ck_assert_int_eq(tokenizer_bos(t), 1);
    ck_assert_int_eq(tokenizer_eos(t), 2);
    ck_assert(tokenizer_is_eog(t, 2) && tokenizer_add_bos(t) && !tokenizer_add_eos(t));
    tokenizer_destroy(t);
    write_bpe(&w, "llama-bpe", NULL, 0, NULL, 0);
    t = make_tokenizer(&w);
    ck_assert_int_eq(tokenizer_bos(t), -1);
    ck_assert_int_eq(tokenizer_eos(t), -1);
    ck_assert(!tokenizer_add_bos(t));
    tokenizer_destroy(t);
    write_bpe(&w, "llama-bpe", NULL, 0, NULL, 0);
    gguf_writer_u32(&w, "tokenizer.ggml.bos_token_id", 5);
    gguf_writer_u32(&w, "tokenizer.ggml.eos_token_id", 6);
    t = make_tokenizer(&w);
    ck_assert(tokenizer_add_bos(t) && tokenizer_is_eog(t, 6) && !tokenizer_is_eog(t, 5));
    expect_ids(t, VIEW("a"), true, false, "5 97");
    tokenizer_destroy(t);
}
END_TEST

START_TEST(tokens_that_end_a_turn_are_known_by_their_text)
{
    static const struct token more[] = {
        {"<|im_end|>", 0, 0},     {"<|eot_id|>", 0, TOKEN_CONTROL}, {"<|file_sep|>", 0, 0},
        {"<|fim_prefix|>", 0, 0}, {"<end_of_turn>", 0, 0},          {"end", 0, 0},
    };
    struct gguf_writer w = {0};
    struct tokenizer *t;

    write_bpe(&w, "gpt-2", more, ARRAY_LEN(more), NULL, 0);
    t = make_tokenizer(&w);
    ck_assert(tokenizer_is_eog(t, 256) && tokenizer_is_eog(t, 257) && tokenizer_is_eog(t, 258));
    ck_assert(!tokenizer_is_eog(t, 259) && tokenizer_is_eog(t, 260) && !tokenizer_is_eog(t, 261));
    /* Such a token is a control token whatever the file calls it. */
    ck_assert_int_eq((int)tokenizer_type(t, 256), TOKEN_CONTROL);
    ck_assert_int_eq((int)tokenizer_type(t, 259), TOKEN_CONTROL);
    tokenizer_destroy(t);
}
END_TEST

START_TEST(a_harmony_end_is_no_end_and_its_frames_are_shown_but_not_for_users)
{
    static const struct token more[] = {
        {"<|return|>", 0, TOKEN_CONTROL},  {"<|call|>", 0, TOKEN_CONTROL},
        {"<|end|>", 0, TOKEN_CONTROL},     {"<|channel|>", 0, TOKEN_CONTROL},
        {"<|message|>", 0, TOKEN_CONTROL}, {"<|start|>", 0, TOKEN_CONTROL},
    };
    struct gguf_writer w = {0};
    struct tokenizer *t;
    struct token_list ids = {0};
    struct err err = {0};

    write_bpe(&w, "gpt-4o", more, ARRAY_LEN(more), NULL, 0);
    t = make_tokenizer(&w);
    ck_assert(tokenizer_is_eog(t, 256) && tokenizer_is_eog(t, 257) && !tokenizer_is_eog(t, 258));
    expect_text(t, "261 97 259 98 260 258 256", false, false,
                "<|start|>a<|channel|>b<|message|><|end|>");
    expect_ids(t, VIEW("<|channel|>"), false, true, "259");
    ck_assert_int_eq(tokenizer_encode(t, VIEW("<|channel|>"), false, false, &ids, &err), 0);
    ck_assert_uint_eq(ids.n, 11);
    token_list_clear(&ids);
    tokenizer_destroy(t);
}
END_TEST

START_TEST(what_is_unknown_is_refused_by_name)
{
    struct gguf_writer w = {0};

    write_tokens(&w, "plamo2", few, ARRAY_LEN(few));
    expect_no_tokenizer(&w, ERR_UNSUPPORTED, "'plamo2'");
    write_bpe(&w, "no-such-splitter", NULL, 0, NULL, 0);
    expect_no_tokenizer(&w, ERR_UNSUPPORTED, "'no-such-splitter'");
    gguf_writer_u32(&w, "x", 1);
    expect_no_tokenizer(&w, ERR_FORMAT, "tokenizer.ggml.model");
    gguf_writer_u32(&w, "tokenizer.ggml.model", 1);
    expect_no_tokenizer(&w, ERR_FORMAT, "tokenizer.ggml.model");
    gguf_writer_string(&w, "tokenizer.ggml.model", "bad\x1b[31m\xff");
    expect_no_tokenizer(&w, ERR_UNSUPPORTED, "'bad'");
}
END_TEST

START_TEST(a_vocabulary_of_the_wrong_shape_is_refused)
{
    struct gguf_writer w = {0};
    const char *const texts[] = {"a", "b"};

    gguf_writer_string(&w, "tokenizer.ggml.model", "llama");
    expect_no_tokenizer(&w, ERR_FORMAT, "no tokens");
    gguf_writer_string(&w, "tokenizer.ggml.model", "llama");
    gguf_writer_strings(&w, "tokenizer.ggml.tokens", texts, 0);
    expect_no_tokenizer(&w, ERR_FORMAT, "no tokens");
    gguf_writer_string(&w, "tokenizer.ggml.model", "llama");
    gguf_writer_array(&w, "tokenizer.ggml.tokens", GGUF_U32, (const uint32_t[]){1, 2}, 2);
    expect_no_tokenizer(&w, ERR_FORMAT, "not an array of strings");
    gguf_writer_string(&w, "tokenizer.ggml.model", "llama");
    gguf_writer_string(&w, "tokenizer.ggml.tokens", "a");
    expect_no_tokenizer(&w, ERR_FORMAT, "not an array of strings");
    gguf_writer_string(&w, "tokenizer.ggml.model", "llama");
    gguf_writer_strings(&w, "tokenizer.ggml.tokens", (const char *const[]){"a", "b", "a"}, 3);
    expect_no_tokenizer(&w, ERR_FORMAT, "tokens 0 and 2");
}
END_TEST

static void write_two(struct gguf_writer *w)
{
    gguf_writer_string(w, "tokenizer.ggml.model", "llama");
    gguf_writer_strings(w, "tokenizer.ggml.tokens", (const char *const[]){"a", "b"}, 2);
}

START_TEST(scores_and_types_are_as_many_numbers_as_tokens)
{
    struct gguf_writer w = {0};

    write_two(&w);
    gguf_writer_array(&w, "tokenizer.ggml.scores", GGUF_F32, (const float[]){1}, 1);
    expect_no_tokenizer(&w, ERR_FORMAT, "1 elements for 2 tokens");
    write_two(&w);
    gguf_writer_strings(&w, "tokenizer.ggml.scores", (const char *const[]){"a", "b"}, 2);
    expect_no_tokenizer(&w, ERR_FORMAT, "not an array of numbers");
    write_two(&w);
    gguf_writer_array(&w, "tokenizer.ggml.scores", GGUF_F32, (const float[]){1, NAN}, 2);
    expect_no_tokenizer(&w, ERR_FORMAT, "not a number");
    write_two(&w);
    gguf_writer_array(&w, "tokenizer.ggml.scores", GGUF_F32, (const float[]){1, 2}, 2);
    gguf_writer_array(&w, "tokenizer.ggml.token_type", GGUF_I32, (const int32_t[]){1}, 1);
    expect_no_tokenizer(&w, ERR_FORMAT, "1 elements for 2 tokens");
    write_two(&w);
    gguf_writer_array(&w, "tokenizer.ggml.scores", GGUF_F32, (const float[]){1, 2}, 2);
    gguf_writer_array(&w, "tokenizer.ggml.token_type", GGUF_I32, (const int32_t[]){1, 99}, 2);
    expect_no_tokenizer(&w, ERR_FORMAT, "type 99");
    write_two(&w);
    gguf_writer_array(&w, "tokenizer.ggml.scores", GGUF_F32, (const float[]){1, 2}, 2);
    gguf_writer_array(&w, "tokenizer.ggml.token_type", GGUF_F32, (const float[]){1, 1}, 2);
    expect_no_tokenizer(&w, ERR_FORMAT, "array of integers");
}
END_TEST

START_TEST(an_empty_token_is_never_found_and_gives_no_text)
{
    struct gguf_writer w = {0};
    struct tokenizer *t;
    struct str out = {0};

    write_spm(&w, (const struct token[]){{"", 0, 0}, {"", 0, TOKEN_CONTROL}, {"b", 0, 0}}, 3);
    t = make_tokenizer(&w);
    ck_assert_int_eq(tokenizer_find(t, VIEW("")), -1);
    expect_ids(t, VIEW("b"), false, true, "229 153 132 261");
    tokenizer_piece(t, 259, true, &out);
    ck_assert_uint_eq(out.len, 0);
    str_clear(&out);
    tokenizer_destroy(t);
}
END_TEST

TCase *tcase_tokenizer_vocab(void);
TCase *tcase_tokenizer_vocab(void)
{
    TCase *tc = tcase_create("vocab");

    tcase_add_loop_test(tc, a_file_without_a_vocabulary_has_no_tokenizer_and_that_is_no_error, 0,
                        2);
    tcase_add_test(tc, texts_types_and_ids_are_those_of_the_file);
    tcase_add_loop_test(tc, ids_outside_the_vocabulary_are_harmless, 0, 4);
    tcase_add_loop_test(tc, an_id_beyond_the_vocabulary_is_refused_by_its_key, 0,
                        ARRAY_LEN(id_keys));
    tcase_add_test(tc, begin_and_end_are_what_the_file_says_or_the_kinds_own);
    tcase_add_test(tc, tokens_that_end_a_turn_are_known_by_their_text);
    tcase_add_test(tc, a_harmony_end_is_no_end_and_its_frames_are_shown_but_not_for_users);
    tcase_add_test(tc, what_is_unknown_is_refused_by_name);
    tcase_add_test(tc, a_vocabulary_of_the_wrong_shape_is_refused);
    tcase_add_test(tc, scores_and_types_are_as_many_numbers_as_tokens);
    tcase_add_test(tc, an_empty_token_is_never_found_and_gives_no_text);
    return tc;
}
