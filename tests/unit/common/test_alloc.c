/* Allocation, growable arrays and whole pages. */
#include <check.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"

START_TEST(nothing_is_a_valid_size)
{
    void *p = xmalloc(0);

    ck_assert_ptr_nonnull(p);
    p = xrealloc(p, 0);
    ck_assert_ptr_nonnull(p);
    free(p);
    p = xcalloc(0, 8);
    ck_assert_ptr_nonnull(p);
    free(p);
    p = xmemdup("", 0);
    ck_assert_ptr_nonnull(p);
    free(p);
}
END_TEST

START_TEST(copies_are_terminated)
{
    char *s = xstrndup("abcdef", 3);

    ck_assert_str_eq(s, "abc");
    free(s);
    s = xstrndup("ab", 100);
    ck_assert_str_eq(s, "ab");
    free(s);
    ck_assert_ptr_null(xstrdup(NULL));
    s = xasprintf("%s-%d", "x", 7);
    ck_assert_str_eq(s, "x-7");
    free(s);
}
END_TEST

START_TEST(an_array_keeps_its_elements_while_it_grows)
{
    int *items = NULL;
    size_t n = 0, cap = 0;

    for (int i = 0; i < 1000; i++) {
        ARRAY_GROW(items, n + 1, cap);
        ck_assert_uint_gt(cap, n);
        items[n++] = i;
    }
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(items[i], i);
    ck_assert_uint_lt(cap, 2000);
    free(items);
}
END_TEST

START_TEST(an_array_that_is_large_enough_is_left_alone)
{
    int *items = NULL, *before;
    size_t cap = 0;

    ARRAY_GROW(items, 100, cap);
    before = items;
    ARRAY_GROW(items, 100, cap);
    ck_assert_ptr_eq(items, before);
    free(items);
}
END_TEST

START_TEST(a_product_that_wraps_round_ends_the_process)
{
    free(xreallocarray(NULL, SIZE_MAX / 2, 16));
}
END_TEST

START_TEST(an_array_of_impossible_length_ends_the_process)
{
    size_t cap = 0;

    free(array_grow(NULL, SIZE_MAX - 1, &cap, 1));
}
END_TEST

START_TEST(pages_come_zeroed_and_writable)
{
    size_t bytes = 100000;
    char *p = alloc_pages(bytes, 0);

    ck_assert_ptr_nonnull(p);
    for (size_t i = 0; i < bytes; i++)
        ck_assert_int_eq(p[i], 0);
    memset(p, 1, alloc_page_round(bytes));
    free_pages(p, bytes);
    free_pages(NULL, bytes);
}
END_TEST

START_TEST(huge_pages_begin_on_their_boundary)
{
    size_t bytes = ((size_t)5 << 20) + 1;

    for (int i = 0; i < 4; i++) {
        char *p = alloc_pages(bytes, 1);

        ck_assert_ptr_nonnull(p);
        ck_assert_uint_eq((uintptr_t)p % ((size_t)2 << 20), 0);
        p[0] = p[bytes - 1] = 1;
        free_pages(p, bytes);
    }
}
END_TEST

START_TEST(pages_that_cannot_be_are_refused)
{
    ck_assert_ptr_null(alloc_pages(SIZE_MAX, 0));
    ck_assert_ptr_null(alloc_pages(SIZE_MAX - 4096, 1));
    ck_assert_ptr_null(alloc_pages((size_t)1 << 62, 1));
}
END_TEST

START_TEST(bytes_are_rounded_up_to_pages)
{
    size_t page = alloc_page_round(1);

    ck_assert_uint_ge(page, 4096);
    ck_assert_uint_eq(alloc_page_round(0), 0);
    ck_assert_uint_eq(alloc_page_round(page), page);
    ck_assert_uint_eq(alloc_page_round(page + 1), 2 * page);
}
END_TEST

TCase *tcase_common_alloc(void);
TCase *tcase_common_alloc(void)
{
    TCase *tc = tcase_create("alloc");

    tcase_add_test(tc, nothing_is_a_valid_size);
    tcase_add_test(tc, copies_are_terminated);
    tcase_add_test(tc, an_array_keeps_its_elements_while_it_grows);
    tcase_add_test(tc, an_array_that_is_large_enough_is_left_alone);
    tcase_add_test_raise_signal(tc, a_product_that_wraps_round_ends_the_process, SIGABRT);
    tcase_add_test_raise_signal(tc, an_array_of_impossible_length_ends_the_process, SIGABRT);
    tcase_add_test(tc, pages_come_zeroed_and_writable);
    tcase_add_test(tc, huge_pages_begin_on_their_boundary);
    tcase_add_test(tc, pages_that_cannot_be_are_refused);
    tcase_add_test(tc, bytes_are_rounded_up_to_pages);
    return tc;
}
