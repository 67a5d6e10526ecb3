/* Growable bytes and borrowed views. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/str.h"

START_TEST(an_empty_string_can_be_read_cut_and_cleared)
{
    struct str s = {0};

    ck_assert_str_eq(str_text(&s), "");
    str_truncate(&s, 0);
    str_remove_front(&s, 5);
    str_add(&s, NULL, 0);
    ck_assert_uint_eq(s.len, 0);
    ck_assert_str_eq(str_text(&s), "");
    str_clear(&s);
    str_clear(&s);
}
END_TEST

START_TEST(pieces_are_appended_in_order)
{
    struct str s = {0};

    str_adds(&s, "ab");
    str_addc(&s, 'c');
    str_addf(&s, "%d%s", 12, "z");
    str_add_utf8(&s, 0x20AC);
    str_add(&s, "\0x", 2);
    ck_assert_uint_eq(s.len, 11);
    ck_assert_mem_eq(s.p, "abc12z\xE2\x82\xAC\0x", 12);
    str_clear(&s);
    ck_assert_ptr_null(s.p);
}
END_TEST

START_TEST(a_long_text_is_written_whole)
{
    struct str s = {0};

    for (int i = 0; i < 10000; i++)
        str_addf(&s, "%05d", i);
    ck_assert_uint_eq(s.len, 50000);
    ck_assert_str_eq(s.p + 49995, "09999");
    str_addf(&s, "%0*d", 70000, 1);
    ck_assert_uint_eq(s.len, 120000);
    str_clear(&s);
}
END_TEST

START_TEST(front_and_end_can_be_cut_away)
{
    struct str s = {0};

    str_adds(&s, "abcdef");
    str_remove_front(&s, 2);
    ck_assert_str_eq(s.p, "cdef");
    str_truncate(&s, 2);
    ck_assert_str_eq(s.p, "cd");
    str_truncate(&s, 100);
    ck_assert_uint_eq(s.len, 2);
    str_remove_front(&s, 100);
    ck_assert_uint_eq(s.len, 0);
    ck_assert_str_eq(s.p, "");
    str_clear(&s);
}
END_TEST

START_TEST(what_is_taken_is_the_callers)
{
    struct str s = {0};
    char *p = str_take(&s);

    ck_assert_str_eq(p, "");
    free(p);
    str_adds(&s, "x");
    p = str_take(&s);
    ck_assert_str_eq(p, "x");
    ck_assert_ptr_null(s.p);
    ck_assert_uint_eq(s.cap, 0);
    free(p);
}
END_TEST

START_TEST(views_compare_by_bytes)
{
    struct view none = {NULL, 0};

    ck_assert(view_is(view_of("abc"), "abc"));
    ck_assert(!view_is(view_of("abc"), "abd"));
    ck_assert(!view_is(view_of("ab"), "abc"));
    ck_assert(view_eq(none, VIEW("")));
    ck_assert(view_starts(VIEW("abc"), VIEW("ab")));
    ck_assert(view_starts(VIEW("abc"), none));
    ck_assert(view_starts(none, none));
    ck_assert(!view_starts(VIEW("a"), VIEW("ab")));
    ck_assert(view_eq((struct view){"a\0b", 3}, (struct view){"a\0b", 3}));
    ck_assert(!view_eq((struct view){"a\0b", 3}, (struct view){"a\0c", 3}));
}
END_TEST

START_TEST(a_part_of_a_view_never_leaves_it)
{
    struct view v = VIEW("hello");
    struct view none = {NULL, 0};

    ck_assert(view_is(view_sub(v, 1, 3), "ell"));
    ck_assert(view_is(view_sub(v, 3, 100), "lo"));
    ck_assert(view_is(view_sub(v, 3, (size_t)-1), "lo"));
    ck_assert(view_is(view_sub(v, 100, 1), ""));
    ck_assert_uint_eq(view_sub(none, 0, 4).len, 0);
    ck_assert_uint_eq(view_sub(none, 9, 4).len, 0);
}
END_TEST

START_TEST(a_view_is_copied_with_an_end)
{
    struct str s = {0};
    char *p;

    str_adds(&s, "abcd");
    p = view_dup(view_sub(view_of_str(&s), 1, 2));
    ck_assert_str_eq(p, "bc");
    free(p);
    p = view_dup((struct view){NULL, 0});
    ck_assert_str_eq(p, "");
    free(p);
    str_clear(&s);
}
END_TEST

START_TEST(a_needle_is_found_at_or_after_the_start)
{
    struct view hay = VIEW("abcabc");
    struct view none = {NULL, 0};

    ck_assert_int_eq(view_find(hay, VIEW("bc"), 0), 1);
    ck_assert_int_eq(view_find(hay, VIEW("bc"), 1), 1);
    ck_assert_int_eq(view_find(hay, VIEW("bc"), 2), 4);
    ck_assert_int_eq(view_find(hay, VIEW("bc"), 5), -1);
    ck_assert_int_eq(view_find(hay, VIEW("bc"), 7), -1);
    ck_assert_int_eq(view_find(hay, VIEW(""), 6), 6);
    ck_assert_int_eq(view_find(hay, VIEW("abcabcd"), 0), -1);
    ck_assert_int_eq(view_find(none, VIEW("a"), 0), -1);
    ck_assert_int_eq(view_find(none, none, 0), 0);
}
END_TEST

TCase *tcase_common_str(void);
TCase *tcase_common_str(void)
{
    TCase *tc = tcase_create("str");

    tcase_add_test(tc, an_empty_string_can_be_read_cut_and_cleared);
    tcase_add_test(tc, pieces_are_appended_in_order);
    tcase_add_test(tc, a_long_text_is_written_whole);
    tcase_add_test(tc, front_and_end_can_be_cut_away);
    tcase_add_test(tc, what_is_taken_is_the_callers);
    tcase_add_test(tc, views_compare_by_bytes);
    tcase_add_test(tc, a_part_of_a_view_never_leaves_it);
    tcase_add_test(tc, a_view_is_copied_with_an_end);
    tcase_add_test(tc, a_needle_is_found_at_or_after_the_start);
    return tc;
}
