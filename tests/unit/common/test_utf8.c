/* UTF-8 as RFC 3629 has it. */
#include <check.h>
#include <string.h>

#include "common/utf8.h"

START_TEST(every_code_point_comes_back)
{
    for (unsigned cp = 0; cp <= 0x10FFFF; cp++) {
        char buf[4];
        size_t len = utf8_encode(cp, buf);
        unsigned want = cp >= 0xD800 && cp <= 0xDFFF ? UTF8_REPLACEMENT : cp;
        unsigned got;

        if (utf8_decode(buf, len, &got) != len || got != want || !utf8_valid(buf, len))
            ck_abort_msg("U+%04X came back as U+%04X", cp, got);
    }
}
END_TEST

START_TEST(what_has_no_form_is_written_as_the_replacement)
{
    char buf[4];

    ck_assert_uint_eq(utf8_encode(0x110000, buf), 3);
    ck_assert_mem_eq(buf, "\xEF\xBF\xBD", 3);
    ck_assert_uint_eq(utf8_encode(0xFFFFFFFF, buf), 3);
    ck_assert_uint_eq(utf8_encode(0xD800, buf), 3);
}
END_TEST

static const char *const wrong[] = {
    "\x80",             /* a continuation first */
    "\xBF",             /**/
    "\xC0\x80",         /* overlong zero */
    "\xC1\xBF",         /* overlong */
    "\xE0\x9F\xBF",     /* overlong */
    "\xF0\x8F\xBF\xBF", /* overlong */
    "\xED\xA0\x80",     /* first surrogate */
    "\xED\xBF\xBF",     /* last surrogate */
    "\xF4\x90\x80\x80", /* past U+10FFFF */
    "\xF5\x80\x80\x80", /**/
    "\xFE",             /**/
    "\xFF",             /**/
    "\xC3(",            /* no continuation */
    "\xE2\x82(",        /**/
    "\xE2(\xAC",        /**/
    "\xF0\x90\x80(",    /**/
    "\xC3",             /* cut short */
    "\xE2\x82",         /**/
    "\xF0\x90\x80",     /**/
};

START_TEST(a_wrong_sequence_is_refused)
{
    unsigned cp = 0;

    ck_assert_uint_eq(utf8_decode(wrong[_i], strlen(wrong[_i]), &cp), 0);
    ck_assert_uint_eq(cp, UTF8_REPLACEMENT);
    ck_assert(!utf8_valid(wrong[_i], strlen(wrong[_i])));
}
END_TEST

START_TEST(nothing_at_all_is_valid)
{
    unsigned cp;

    ck_assert(utf8_valid("", 0));
    ck_assert(utf8_valid(NULL, 0));
    ck_assert_uint_eq(utf8_decode(NULL, 0, &cp), 0);
    ck_assert_uint_eq(utf8_length(NULL, 0), 0);
    ck_assert_uint_eq(utf8_incomplete_tail(NULL, 0), 0);
}
END_TEST

START_TEST(zero_is_a_code_point_like_any_other)
{
    unsigned cp = 1;

    ck_assert_uint_eq(utf8_decode("\0", 1, &cp), 1);
    ck_assert_uint_eq(cp, 0);
    ck_assert(utf8_valid("a\0b", 3));
}
END_TEST

START_TEST(code_points_are_counted_and_wrong_bytes_are_one_each)
{
    ck_assert_uint_eq(utf8_length("a\xE2\x82\xAC\xF0\x9F\x98\x80", 8), 3);
    ck_assert_uint_eq(utf8_length("\xE2\x82", 2), 2);
    ck_assert_uint_eq(utf8_length("\xFF\xFF"
                                  "a",
                                  3),
                      3);
}
END_TEST

static const struct {
    const char *text;
    size_t tail;
} tails[] = {
    {"abc", 0},
    {"\xC3", 1},
    {"a\xC3", 1},
    {"\xC3\xA9", 0},
    {"\xE2", 1},
    {"\xE2\x82", 2},
    {"\xE2\x82\xAC", 0},
    {"\xF0", 1},
    {"\xF0\x9F", 2},
    {"\xF0\x9F\x98", 3},
    {"\xF0\x9F\x98\x80", 0},
    {"\xE0\x80", 0}, /* can become nothing */
    {"\xED\xA0", 0},
    {"\xF4\x90", 0},
    {"\xF4\x90\x80", 0},
    {"\xFF", 0},
    {"\x80\x80\x80", 0},
    {"\xC0", 0},
};

START_TEST(only_what_more_bytes_could_complete_is_held_back)
{
    ck_assert_uint_eq(utf8_incomplete_tail(tails[_i].text, strlen(tails[_i].text)), tails[_i].tail);
}
END_TEST

TCase *tcase_common_utf8(void);
TCase *tcase_common_utf8(void)
{
    TCase *tc = tcase_create("utf8");

    tcase_add_test(tc, every_code_point_comes_back);
    tcase_add_test(tc, what_has_no_form_is_written_as_the_replacement);
    tcase_add_loop_test(tc, a_wrong_sequence_is_refused, 0, sizeof wrong / sizeof *wrong);
    tcase_add_test(tc, nothing_at_all_is_valid);
    tcase_add_test(tc, zero_is_a_code_point_like_any_other);
    tcase_add_test(tc, code_points_are_counted_and_wrong_bytes_are_one_each);
    tcase_add_loop_test(tc, only_what_more_bytes_could_complete_is_held_back, 0,
                        sizeof tails / sizeof *tails);
    return tc;
}
