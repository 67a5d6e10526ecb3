/* Special tokens: where they are matched and where not. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "tests/unit/tokenizer/helper.h"

/* From 256 on. */
static const struct token specials[] = {
    {"<|im_start|>", 0, TOKEN_CONTROL}, {"<|im_end|>", 0, TOKEN_CONTROL},
    {"<think>", 0, TOKEN_USER_DEFINED}, {"<|im|>", 0, TOKEN_CONTROL},
    {"<|im|><|im|>", 0, TOKEN_CONTROL}, {"[UNK]", 0, TOKEN_UNKNOWN},
};

static struct tokenizer *small(struct gguf_writer *w)
{
    write_bpe(w, "gpt-2", specials, ARRAY_LEN(specials), NULL, 0);
    return make_tokenizer(w);
}

static void expect_spans(const struct tokenizer *t, const char *text,
                         const struct token_span *spans, size_t n, const char *want)
{
    struct token_list ids = {0};
    struct str got = {0};
    struct err err = {0};

    ck_assert_int_eq(tokenizer_encode_spans(t, view_of(text), spans, n, false, &ids, &err), 0);
    for (size_t i = 0; i < ids.n; i++)
        str_addf(&got, "%s%d", i ? " " : "", (int)ids.ids[i]);
    ck_assert_str_eq(str_text(&got), want);
    token_list_clear(&ids);
    str_clear(&got);
}

START_TEST(control_tokens_are_matched_only_in_trusted_text)
{
    struct gguf_writer w = {0};
    struct tokenizer *t = small(&w);
    struct token_list ids = {0};
    struct err err = {0};

    expect_ids(t, VIEW("<|im_end|>"), false, true, "257");
    expect_ids(t, VIEW("a<|im_end|>b<|im_start|>"), false, true, "97 257 98 256");
    expect_ids(t, VIEW("[UNK]"), false, true, "261");
    ck_assert_int_eq(tokenizer_encode(t, VIEW("<|im_end|>[UNK]"), false, false, &ids, &err), 0);
    ck_assert_uint_eq(ids.n, 15);
    for (size_t i = 0; i < ids.n; i++)
        ck_assert_int_lt(ids.ids[i], 256);
    token_list_clear(&ids);
    tokenizer_destroy(t);
}
END_TEST

START_TEST(user_defined_tokens_are_matched_everywhere)
{
    struct gguf_writer w = {0};
    struct tokenizer *t = small(&w);

    expect_ids(t, VIEW("a<think>"), false, false, "97 258");
    expect_ids(t, VIEW("a<think>"), false, true, "97 258");
    tokenizer_destroy(t);
}
END_TEST

START_TEST(text_of_a_user_between_trusted_parts_never_becomes_a_control_token)
{
    static const char text[] = "<|im_end|>u<|im_end|>v<|im_end|>";
    struct gguf_writer w = {0};
    struct tokenizer *t = small(&w);
    struct token_span spans[] = {{0, 10, true}, {10, 22, false}, {22, 32, true}};

    expect_spans(t, text, spans, 3, "257 117 60 124 105 109 95 101 110 100 124 62 118 257");
    tokenizer_destroy(t);
}
END_TEST

START_TEST(a_control_token_that_lies_in_two_parts_is_text)
{
    static const char text[] = "<|im_end|>";
    struct gguf_writer w = {0};
    struct tokenizer *t = small(&w);

    /* The user's part is the last byte, the first byte, the middle. */
    for (size_t cut = 1; cut < strlen(text); cut++) {
        struct token_span tail[] = {{0, cut, true}, {cut, 10, false}};
        struct token_span head[] = {{0, cut, false}, {cut, 10, true}};
        struct token_span both[] = {{0, cut, true}, {cut, 10, true}};

        expect_spans(t, text, tail, 2, "60 124 105 109 95 101 110 100 124 62");
        expect_spans(t, text, head, 2, "60 124 105 109 95 101 110 100 124 62");
        expect_spans(t, text, both, 2, "60 124 105 109 95 101 110 100 124 62");
    }
    tokenizer_destroy(t);
}
END_TEST

START_TEST(spans_that_do_not_cover_the_text_are_refused)
{
    static const struct token_span cases[][2] = {{{0, 2, true}, {3, 4, true}},
                                                 {{0, 2, true}, {2, 5, true}},
                                                 {{0, 2, true}, {1, 4, true}},
                                                 {{0, 2, true}, {2, 3, true}}};
    struct gguf_writer w = {0};
    struct tokenizer *t = small(&w);
    struct token_list ids = {0};
    struct err err = {0};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        ck_assert_int_eq(tokenizer_encode_spans(t, VIEW("abcd"), cases[i], 2, true, &ids, &err),
                         -ERR_INTERNAL);
    ck_assert_int_eq(tokenizer_encode_spans(t, VIEW(""), NULL, 0, true, &ids, &err), 0);
    ck_assert_uint_eq(ids.n, 0);
    tokenizer_destroy(t);
}
END_TEST

START_TEST(the_longest_token_wins_wherever_it_stands)
{
    struct gguf_writer w = {0};
    struct tokenizer *t = small(&w);

    expect_ids(t, VIEW("<|im|>"), false, true, "259");
    expect_ids(t, VIEW("<|im|><|im|>"), false, true, "260");
    /* Left to right among equals: the third is alone. */
    expect_ids(t, VIEW("<|im|><|im|><|im|>"), false, true, "260 259");
    expect_ids(t, VIEW("<|im|<|im|>"), false, true, "60 124 105 109 124 259");
    tokenizer_destroy(t);
}
END_TEST

START_TEST(more_than_64_lengths_are_all_found)
{
    struct token many[150];
    char texts[150][200];
    struct gguf_writer w = {0};
    struct tokenizer *t;

    for (size_t i = 0; i < ARRAY_LEN(many); i++) {
        memset(texts[i], 'x', i + 2);
        texts[i][i + 2] = '\0';
        many[i] = (struct token){texts[i], 0, TOKEN_CONTROL};
    }
    write_bpe(&w, "gpt-2", many, ARRAY_LEN(many), NULL, 0);
    t = make_tokenizer(&w);
    for (size_t i = 0; i < ARRAY_LEN(many); i++) {
        char want[16];

        snprintf(want, sizeof want, "%zu", 256 + i);
        expect_ids(t, view_of(texts[i]), false, true, want);
    }
    expect_ids(t, VIEW("x"), false, true, "120");
    tokenizer_destroy(t);
}
END_TEST

START_TEST(white_space_round_a_token_belongs_to_it_where_the_model_is_known_for_it)
{
    static const struct token phi[] = {{"<|end|>", 0, TOKEN_CONTROL},
                                       {"<|endoftext|>", 0, TOKEN_CONTROL}};
    struct gguf_writer w = {0};
    struct tokenizer *t;

    gguf_writer_string(&w, "general.name", "Phi-3 mini");
    gguf_writer_bool(&w, "tokenizer.ggml.add_space_prefix", false);
    write_spm(&w, phi, ARRAY_LEN(phi));
    t = make_tokenizer(&w);
    expect_ids(t, VIEW("a<|end|> \n b"), false, true, "100 259 101");
    expect_ids(t, VIEW("<|end|> \n<|end|>"), false, true, "259 259");
    expect_ids(t, VIEW("a<|endoftext|> b"), false, true, "100 260 229 153 132 101");
    tokenizer_destroy(t);
    gguf_writer_string(&w, "general.name", "jina");
    write_bpe(&w, "jina-v2-code", &(const struct token){"<mask>", 0, TOKEN_CONTROL}, 1, NULL, 0);
    t = make_tokenizer(&w);
    expect_ids(t, VIEW("a \n<mask> b"), false, true, "97 256 32 98");
    tokenizer_destroy(t);
}
END_TEST

START_TEST(a_million_bytes_that_almost_match_are_no_square)
{
    struct gguf_writer w = {0};
    struct tokenizer *t = small(&w);
    struct token_list ids = {0};
    struct err err = {0};
    char *text = repeat("<|im|><|im_", 100000);

    ck_assert_int_eq(tokenizer_encode(t, view_of(text), false, true, &ids, &err), 0);
    ck_assert_uint_eq(ids.n, 100000 * 6);
    token_list_clear(&ids);
    free(text);
    tokenizer_destroy(t);
}
END_TEST

TCase *tcase_tokenizer_special(void);
TCase *tcase_tokenizer_special(void)
{
    TCase *tc = tcase_create("special");

    tcase_add_test(tc, control_tokens_are_matched_only_in_trusted_text);
    tcase_add_test(tc, user_defined_tokens_are_matched_everywhere);
    tcase_add_test(tc, text_of_a_user_between_trusted_parts_never_becomes_a_control_token);
    tcase_add_test(tc, a_control_token_that_lies_in_two_parts_is_text);
    tcase_add_test(tc, spans_that_do_not_cover_the_text_are_refused);
    tcase_add_test(tc, the_longest_token_wins_wherever_it_stands);
    tcase_add_test(tc, more_than_64_lengths_are_all_found);
    tcase_add_test(tc, white_space_round_a_token_belongs_to_it_where_the_model_is_known_for_it);
    tcase_add_test(tc, a_million_bytes_that_almost_match_are_no_square);
    return tc;
}
