/* The string-keyed table. */
#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/map.h"

START_TEST(an_empty_map_answers)
{
    struct map *m = map_create();
    size_t i = 0;

    ck_assert_uint_eq(map_count(m), 0);
    ck_assert_ptr_null(map_gets(m, "a"));
    ck_assert_ptr_null(map_removes(m, "a"));
    ck_assert(!map_has(m, "", 0));
    ck_assert(!map_next(m, &i, NULL, NULL, NULL));
    map_destroy(m, NULL);
    map_destroy(NULL, free);
}
END_TEST

START_TEST(a_key_is_added_once)
{
    struct map *m = map_create();
    int a, b;

    ck_assert(map_adds(m, "k", &a));
    ck_assert(!map_adds(m, "k", &b));
    ck_assert_ptr_eq(map_gets(m, "k"), &a);
    ck_assert_ptr_eq(map_put(m, "k", 1, &b), &a);
    ck_assert_ptr_eq(map_gets(m, "k"), &b);
    ck_assert_ptr_null(map_put(m, "l", 1, &a));
    ck_assert_uint_eq(map_count(m), 2);
    map_destroy(m, NULL);
}
END_TEST

START_TEST(borrowed_keys_are_used_where_they_are)
{
    struct map *m = map_create_borrowing();
    char keys[300][16];
    const char *key;
    size_t i = 0, len;
    int v;

    for (int k = 0; k < 300; k++) {
        snprintf(keys[k], sizeof keys[k], "%d", k);
        ck_assert(map_adds(m, keys[k], &v));
    }
    ck_assert(!map_adds(m, "7", &v));
    ck_assert(map_next(m, &i, &key, &len, NULL));
    ck_assert_ptr_eq(key, keys[0]);
    ck_assert_ptr_eq(map_removes(m, "0"), &v);
    ck_assert_ptr_null(map_gets(m, "0"));
    ck_assert(map_add(m, NULL, 0, &v));
    ck_assert(map_has(m, "", 0));
    ck_assert_uint_eq(map_count(m), 300);
    map_destroy(m, NULL);
}
END_TEST

START_TEST(a_map_is_never_larger_than_it_is_said_to_become)
{
    struct map *m = map_create_borrowing();
    char(*keys)[16] = xcalloc(5000, sizeof *keys);

    ck_assert_uint_le(map_bytes(m), map_bytes_for(0));
    for (size_t n = 0; n < 5000; n++) {
        snprintf(keys[n], sizeof keys[n], "%zu", n);
        map_adds(m, keys[n], NULL);
        ck_assert_uint_le(map_bytes(m), map_bytes_for(n + 1));
        ck_assert_uint_le(map_bytes_for(n + 1), 4 * map_bytes(m));
    }
    map_destroy(m, NULL);
    free(keys);
}
END_TEST

START_TEST(keys_are_bytes_and_are_copied)
{
    struct map *m = map_create();
    char key[] = {'a', 0, 'b'};
    int v, w;

    ck_assert(map_add(m, key, 3, &v));
    key[2] = 'c';
    ck_assert(map_add(m, key, 3, &w));
    ck_assert(map_add(m, "", 0, NULL));
    ck_assert_ptr_eq(map_get(m, "a\0b", 3), &v);
    ck_assert_ptr_eq(map_get(m, "a\0c", 3), &w);
    ck_assert_ptr_null(map_get(m, "a", 1));
    ck_assert(map_has(m, NULL, 0));
    ck_assert(!map_has(m, "a", 1));
    map_destroy(m, NULL);
}
END_TEST

START_TEST(a_null_value_is_a_value)
{
    struct map *m = map_create();

    ck_assert(map_adds(m, "k", NULL));
    ck_assert(map_has(m, "k", 1));
    ck_assert(!map_adds(m, "k", NULL));
    ck_assert_uint_eq(map_count(m), 1);
    map_destroy(m, NULL);
}
END_TEST

START_TEST(many_keys_are_found_and_come_in_order)
{
    struct map *m = map_create();
    const char *key;
    size_t len, at = 0;
    void *value;
    char buf[32];

    for (uintptr_t i = 0; i < 20000; i++) {
        snprintf(buf, sizeof buf, "key-%zu", (size_t)i);
        ck_assert(map_adds(m, buf, (void *)(i + 1)));
    }
    for (uintptr_t i = 0; i < 20000; i++) {
        snprintf(buf, sizeof buf, "key-%zu", (size_t)i);
        if (map_gets(m, buf) != (void *)(i + 1))
            ck_abort_msg("%s is lost", buf);
    }
    for (uintptr_t i = 0; i < 20000; i++) {
        ck_assert(map_next(m, &at, &key, &len, &value));
        if (value != (void *)(i + 1) || strlen(key) != len)
            ck_abort_msg("%s is out of order", key);
    }
    ck_assert(!map_next(m, &at, &key, &len, &value));
    map_destroy(m, NULL);
}
END_TEST

START_TEST(removed_keys_leave_the_others_and_their_order)
{
    struct map *m = map_create();
    const char *key;
    size_t at = 0, seen = 0;
    char buf[32];

    for (uintptr_t i = 0; i < 1000; i++) {
        snprintf(buf, sizeof buf, "%zu", (size_t)i);
        map_adds(m, buf, (void *)(i + 1));
    }
    for (uintptr_t i = 0; i < 1000; i += 2) {
        snprintf(buf, sizeof buf, "%zu", (size_t)i);
        ck_assert_ptr_eq(map_removes(m, buf), (void *)(i + 1));
        ck_assert_ptr_null(map_removes(m, buf));
    }
    ck_assert_uint_eq(map_count(m), 500);
    while (map_next(m, &at, &key, NULL, NULL))
        ck_assert_int_eq(strtol(key, NULL, 10), (long)(2 * seen++ + 1));
    ck_assert_uint_eq(seen, 500);
    map_destroy(m, NULL);
}
END_TEST

START_TEST(keys_that_come_and_go_do_not_fill_it)
{
    struct map *m = map_create();
    char buf[32];

    map_adds(m, "stays", m);
    for (int i = 0; i < 100000; i++) {
        snprintf(buf, sizeof buf, "%d", i);
        ck_assert(map_adds(m, buf, m));
        ck_assert_ptr_eq(map_removes(m, buf), m);
    }
    ck_assert_uint_eq(map_count(m), 1);
    ck_assert_ptr_eq(map_gets(m, "stays"), m);
    map_destroy(m, NULL);
}
END_TEST

START_TEST(the_current_key_may_be_removed_while_going_through)
{
    struct map *m = map_create();
    const char *key;
    size_t at = 0, len, n = 0;
    char buf[32];

    for (int i = 0; i < 100; i++) {
        snprintf(buf, sizeof buf, "%d", i);
        map_adds(m, buf, m);
    }
    while (map_next(m, &at, &key, &len, NULL)) {
        ck_assert_ptr_eq(map_remove(m, key, len), m);
        n++;
    }
    ck_assert_uint_eq(n, 100);
    ck_assert_uint_eq(map_count(m), 0);
    map_destroy(m, NULL);
}
END_TEST

static int freed;

static void count_and_free(void *p)
{
    freed++;
    free(p);
}

START_TEST(what_is_left_is_freed_at_the_end)
{
    struct map *m = map_create();

    for (const char *c = "abcdefghijklmnopqrstuvwxyz"; *c; c++)
        map_add(m, c, 1, xmalloc(1));
    free(map_remove(m, "c", 1));
    map_destroy(m, count_and_free);
    ck_assert_int_eq(freed, 25);
}
END_TEST

TCase *tcase_common_map(void);
TCase *tcase_common_map(void)
{
    TCase *tc = tcase_create("map");

    tcase_add_test(tc, an_empty_map_answers);
    tcase_add_test(tc, a_key_is_added_once);
    tcase_add_test(tc, borrowed_keys_are_used_where_they_are);
    tcase_add_test(tc, a_map_is_never_larger_than_it_is_said_to_become);
    tcase_add_test(tc, keys_are_bytes_and_are_copied);
    tcase_add_test(tc, a_null_value_is_a_value);
    tcase_add_test(tc, many_keys_are_found_and_come_in_order);
    tcase_add_test(tc, removed_keys_leave_the_others_and_their_order);
    tcase_add_test(tc, keys_that_come_and_go_do_not_fill_it);
    tcase_add_test(tc, the_current_key_may_be_removed_while_going_through);
    tcase_add_test(tc, what_is_left_is_freed_at_the_end);
    return tc;
}
