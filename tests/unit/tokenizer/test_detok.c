/* Ids to text. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "tests/unit/tokenizer/helper.h"

static const struct token bpe_more[] = {
    {"<|x|>", 0, TOKEN_CONTROL}, {"Ġhi", 0, 0}, {"<u>", 0, TOKEN_USER_DEFINED}, {"日", 0, 0}};

static struct tokenizer *make_bpe(const char *pre)
{
    struct gguf_writer w = {0};

    write_bpe(&w, pre, bpe_more, ARRAY_LEN(bpe_more), NULL, 0);
    return make_tokenizer(&w);
}

START_TEST(byte_level_pieces_are_bytes_again)
{
    struct tokenizer *t = make_bpe("qwen2");

    expect_text(t, "97 257 33", false, false, "a hi!");
    expect_text(t, "195 169", false, false, "é");
    expect_text(t, "97 256 98 258", false, false, "ab<u>");
    expect_text(t, "97 256 98 258", false, true, "a<|x|>b<u>");
    expect_text(t, "259", false, false, "日"); /* no byte stands for it: it stays */
    tokenizer_destroy(t);
}
END_TEST

START_TEST(spaces_before_punctuation_go_where_the_splitter_says_so)
{
    static const struct {
        const char *text, *clean;
    } cases[] = {
        {"a .", "a."},
        {"a , b ?", "a, b?"},
        {"a ! !", "a!!"},
        {"a ' b", "a'b"},
        {"it 's", "it's"},
        {"I 'm we 're they 've", "I'm we're they've"},
        {"don 't he 'd we 'll", "don 't he 'd we 'll"},
        {"a  .", "a ."},
        {".", "."},
        {" .", "."},
        {"' '", "' '"},
        {"a ' ' b", "a'' b"},
    };
    struct tokenizer *clean = make_bpe("gpt-2"), *kept = make_bpe("qwen2");

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct token_list ids = {0};
        struct str out = {0};
        struct err err = {0};

        ck_assert_int_eq(tokenizer_encode(clean, view_of(cases[i].text), false, false, &ids, &err),
                         0);
        str_adds(&out, " ."); /* what stood there before is left alone */
        tokenizer_decode(clean, ids.ids, ids.n, false, false, &out);
        ck_assert_str_eq(str_text(&out) + 2, cases[i].clean);
        str_truncate(&out, 0);
        tokenizer_decode(kept, ids.ids, ids.n, false, false, &out);
        ck_assert_str_eq(str_text(&out), cases[i].text);
        str_clear(&out);
        token_list_clear(&ids);
    }
    tokenizer_destroy(clean);
    tokenizer_destroy(kept);
}
END_TEST

static const struct token spm_more[] = {{"▁a", 0, 0},
                                        {"b▁c", 0, 0},
                                        {"<t>", 0, TOKEN_CONTROL},
                                        {"▁u", 0, TOKEN_USER_DEFINED},
                                        {"gone", 0, TOKEN_UNUSED},
                                        {"odd", 0, TOKEN_BYTE}};

START_TEST(the_space_that_encoding_puts_first_is_taken_away_again)
{
    struct gguf_writer w = {0};
    struct tokenizer *t;

    write_spm(&w, spm_more, ARRAY_LEN(spm_more));
    t = make_tokenizer(&w);
    expect_text(t, "259 259", false, false, "a a");
    expect_text(t, "260", false, false, "b c");
    expect_text(t, "198 172", false, false, "é");
    /* After a begin token that is taken away, the text is as it is. */
    expect_text(t, "1 259 2", true, false, " a");
    expect_text(t, "1 259 2", true, true, " a</s>");
    expect_text(t, "1 259", false, true, "<s> a");
    expect_text(t, "262 263", false, false, "▁u");
    expect_text(t, "264", false, false, "odd");
    expect_text(t, "", true, true, "");
    tokenizer_destroy(t);
}
END_TEST

static bool is_wanted(const void *wanted, struct view text)
{
    return view_is(text, wanted);
}

START_TEST(a_stream_holds_back_what_is_not_yet_a_character)
{
    struct tokenizer *t = make_bpe("qwen2");
    struct detok d;
    struct str out = {0};

    detok_init(&d, t);
    detok_feed(&d, 0xf0, &out);
    detok_feed(&d, 0x9f, &out);
    detok_feed(&d, 0x98, &out);
    ck_assert_uint_eq(out.len, 0);
    detok_feed(&d, 256, &out); /* a control token between the bytes gives nothing */
    detok_feed(&d, 0x80, &out);
    ck_assert_str_eq(str_text(&out), "😀");
    detok_feed(&d, 'x', &out);
    detok_feed(&d, 0xc3, &out);
    ck_assert_str_eq(str_text(&out), "😀x");
    detok_feed(&d, 'y', &out); /* it can no longer become one */
    ck_assert_str_eq(str_text(&out), "😀x\xc3y");
    detok_feed(&d, 0xe4, &out);
    detok_feed(&d, 0xb8, &out);
    detok_finish(&d, &out);
    ck_assert_str_eq(str_text(&out), "😀x\xc3y\xe4\xb8");
    detok_finish(&d, &out);
    ck_assert_str_eq(str_text(&out), "😀x\xc3y\xe4\xb8");
    detok_clear(&d);
    str_clear(&out);
    tokenizer_destroy(t);
}
END_TEST

START_TEST(a_stream_continues_a_text_so_its_first_space_stays)
{
    struct gguf_writer w = {0};
    struct tokenizer *t;
    struct detok d;
    struct str out = {0};

    write_spm(&w, spm_more, ARRAY_LEN(spm_more));
    t = make_tokenizer(&w);
    detok_init(&d, t);
    d.shows = is_wanted;
    d.shows_arg = "<t>";
    detok_feed(&d, 259, &out);
    detok_feed(&d, 261, &out);
    ck_assert_str_eq(str_text(&out), " a<t>");
    detok_clear(&d);
    str_clear(&out);
    tokenizer_destroy(t);
}
END_TEST

START_TEST(a_stream_shows_those_control_tokens_that_are_asked_for)
{
    struct tokenizer *t = make_bpe("qwen2");
    struct str out = {0};
    struct detok d;

    for (int wanted = 0; wanted < 2; wanted++) {
        str_truncate(&out, 0);
        detok_init(&d, t);
        d.shows = is_wanted;
        d.shows_arg = wanted ? "<|x|>" : "<|y|>";
        detok_feed(&d, 97, &out);
        detok_feed(&d, 256, &out);
        ck_assert_str_eq(str_text(&out), wanted ? "a<|x|>" : "a");
        detok_clear(&d);
    }
    str_clear(&out);
    tokenizer_destroy(t);
}
END_TEST

TCase *tcase_tokenizer_detok(void);
TCase *tcase_tokenizer_detok(void)
{
    TCase *tc = tcase_create("detok");

    tcase_add_test(tc, byte_level_pieces_are_bytes_again);
    tcase_add_test(tc, spaces_before_punctuation_go_where_the_splitter_says_so);
    tcase_add_test(tc, the_space_that_encoding_puts_first_is_taken_away_again);
    tcase_add_test(tc, a_stream_holds_back_what_is_not_yet_a_character);
    tcase_add_test(tc, a_stream_continues_a_text_so_its_first_space_stays);
    tcase_add_test(tc, a_stream_shows_those_control_tokens_that_are_asked_for);
    return tc;
}
