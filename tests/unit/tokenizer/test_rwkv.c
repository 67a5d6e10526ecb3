/* RWKV's vocabulary: strings of bytes behind escapes, the longest first. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "common/alloc.h"
#include "tests/unit/tokenizer/helper.h"

TCase *tcase_tokenizer_rwkv(void);

/* Behind "<s>" and the bytes, whose ids are one more than their values. */
static const char *const more[] = {
    "the",         /* 257 */
    " the",        /* 258 */
    "\\n\\n",      /* 259 */
    "\\\\n",       /* 260: a backslash and an n */
    "\\'s",        /* 261 */
    "caf\xc3\xa9", /* 262 */
    "\\xe4\\xbd",  /* 263: a character's first two bytes */
    "them",        /* 264 */
    "  ",          /* 265 */
};

static void byte_text(unsigned b, char text[8])
{
    if (b == '\t' || b == '\n' || b == '\r')
        snprintf(text, 8, "\\%c", b == '\t' ? 't' : b == '\n' ? 'n' : 'r');
    else if (b == '\\' || b == '\'')
        snprintf(text, 8, "\\%c", (int)b);
    else if (b >= ' ' && b < 0x7f)
        snprintf(text, 8, "%c", (int)b);
    else
        snprintf(text, 8, "\\x%02x", b);
}

/* With all bytes but one (-1: all), and the tokens above, or last in place of the last. */
static void write_rwkv(struct gguf_writer *w, int without, const char *last)
{
    struct token tokens[257 + ARRAY_LEN(more)];
    char bytes[256][8];
    size_t n = 0;

    tokens[n++] = (struct token){"<s>", 0, 3};
    for (unsigned b = 0; b < 256; b++) {
        byte_text(b, bytes[b]);
        if ((int)b != without)
            tokens[n++] = (struct token){bytes[b], 0, 0};
    }
    for (size_t i = 0; i < ARRAY_LEN(more); i++)
        tokens[n++] = (struct token){last && i == ARRAY_LEN(more) - 1 ? last : more[i], 0, 0};
    write_tokens(w, "rwkv", tokens, n);
}

START_TEST(the_longest_token_that_fits_is_taken)
{
    struct gguf_writer w = {0};
    struct tokenizer *t;

    write_rwkv(&w, -1, NULL);
    t = make_tokenizer(&w);
    expect_ids(t, VIEW("the them theme"), true, true, "257 258 110 258 110 102");
    expect_ids(t, VIEW("them"), true, true, "264");
    expect_ids(t, VIEW("a   b"), true, true, "98 265 33 99");
    expect_ids(t, VIEW("\n\n\n\\n\t"), true, true, "259 11 260 10");
    expect_ids(t, VIEW("it's caf\xc3\xa9"), true, true, "106 117 261 33 262");
    expect_ids(t, VIEW("\xe4\xbd\xa0\xff"), true, true, "263 161 256");
    expect_ids(t, VIEW(""), true, true, "");
    tokenizer_destroy(t);
}
END_TEST

START_TEST(a_control_token_is_only_made_of_trusted_text)
{
    struct gguf_writer w = {0};
    struct tokenizer *t;

    write_rwkv(&w, -1, NULL);
    t = make_tokenizer(&w);
    expect_ids(t, VIEW("<s>the"), false, true, "0 257");
    expect_ids(t, VIEW("<s>the"), false, false, "61 116 63 257");
    tokenizer_destroy(t);
}
END_TEST

START_TEST(what_was_cut_comes_back_byte_for_byte)
{
    const char text[] = "  the \\n caf\xc3\xa9 \xe4\xbd\xa0\r\n\x01\x7f\xff 'them'";
    struct token_list ids = {0};
    struct gguf_writer w = {0};
    struct tokenizer *t;
    struct str back = {0};
    struct err err = {0};

    write_rwkv(&w, -1, NULL);
    t = make_tokenizer(&w);
    ck_assert_int_eq(tokenizer_encode(t, VIEW(text), false, false, &ids, &err), 0);
    tokenizer_decode(t, ids.ids, ids.n, false, false, &back);
    ck_assert_str_eq(str_text(&back), text);
    token_list_clear(&ids);
    str_clear(&back);
    tokenizer_destroy(t);
}
END_TEST

START_TEST(a_vocabulary_that_cannot_spell_every_text_is_refused)
{
    struct gguf_writer w = {0};

    write_rwkv(&w, 0xe4, NULL);
    expect_no_tokenizer(&w, ERR_FORMAT, "0xE4");
}
END_TEST

START_TEST(an_escape_that_means_no_byte_is_refused)
{
    static const char *const wrong[] = {"\\x4", "\\xg0", "ab\\", "\\x"};

    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct gguf_writer w = {0};

        write_rwkv(&w, -1, wrong[i]);
        expect_no_tokenizer(&w, ERR_FORMAT, "token 265 ");
    }
}
END_TEST

TCase *tcase_tokenizer_rwkv(void)
{
    TCase *tc = tcase_create("rwkv");

    tcase_add_test(tc, the_longest_token_that_fits_is_taken);
    tcase_add_test(tc, a_control_token_is_only_made_of_trusted_text);
    tcase_add_test(tc, what_was_cut_comes_back_byte_for_byte);
    tcase_add_test(tc, a_vocabulary_that_cannot_spell_every_text_is_refused);
    tcase_add_test(tc, an_escape_that_means_no_byte_is_refused);
    return tc;
}
