/* The table of texts, the sorted sets over it, and the joining of symbols. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "daemon/tokenizer/merge.h"
#include "daemon/tokenizer/tokenizer_priv.h"

START_TEST(texts_are_found_by_what_they_say_however_many_there_are)
{
    struct texts t;
    char text[16];

    texts_init(&t, 0, 0);
    for (int i = 0; i < 5000; i++) {
        snprintf(text, sizeof text, "t%d", i);
        ck_assert(texts_add(&t, view_of(text)));
        texts_add_hidden(&t, VIEW("hidden"));
    }
    texts_shrink(&t);
    for (int i = 0; i < 5000; i++) {
        snprintf(text, sizeof text, "t%d", i);
        ck_assert_int_eq(texts_find(&t, view_of(text)), 2 * i);
        ck_assert(view_is(texts_at(&t, (size_t)(2 * i)), text));
    }
    ck_assert_int_eq(texts_find(&t, VIEW("hidden")), -1);
    ck_assert(view_is(texts_at(&t, 1), "hidden"));
    ck_assert(!texts_add(&t, VIEW("t17")));
    ck_assert_uint_eq(t.n, 10000);
    ck_assert_uint_ge(texts_bytes(&t), 10000 * 4 + 5000 * 6);
    texts_clear(&t);
}
END_TEST

START_TEST(a_walk_meets_every_text_that_begins_a_string)
{
    static const char *const list[] = {"b", "ab", "a", "abc", "\xff\xff", "abd", ""};
    uint16_t attrs[ARRAY_LEN(list)] = {1, 1, 1, 1, 1, 2, 1};
    struct prefix_set p;
    struct prefix_walk w = {0};
    struct texts t;
    int32_t id;

    texts_init(&t, ARRAY_LEN(list), 0);
    for (size_t i = 0; i < ARRAY_LEN(list); i++)
        texts_add_hidden(&t, view_of(list[i]));
    prefix_build(&p, &t, attrs, ARRAY_LEN(list), 1);
    ck_assert_uint_eq(p.n, 5);
    ck_assert(prefix_step(&p, &t, &w, 'a', &id) && id == 2);
    ck_assert(prefix_step(&p, &t, &w, 'b', &id) && id == 1);
    ck_assert(prefix_step(&p, &t, &w, 'c', &id) && id == 3);
    ck_assert(!prefix_step(&p, &t, &w, 'c', &id) && id == -1);
    w = (struct prefix_walk){0};
    ck_assert(prefix_step(&p, &t, &w, 0xff, &id) && id == -1);
    ck_assert(prefix_step(&p, &t, &w, 0xff, &id) && id == 4);
    w = (struct prefix_walk){0};
    ck_assert(!prefix_step(&p, &t, &w, 'x', &id));
    prefix_clear(&p);
    texts_clear(&t);
}
END_TEST

/* Joins while the whole is at most arg long; the longer, the sooner. */
static bool up_to(const void *arg, const struct symbol *l, const struct symbol *r,
                  uint32_t *ret_order, int32_t *ret_id)
{
    *ret_order = 100 - (l->len + r->len);
    *ret_id = (int32_t)(l->len + r->len);
    return l->len + r->len <= *(const uint32_t *)arg;
}

START_TEST(pairs_that_have_changed_are_forgotten)
{
    struct work work = {0};
    struct merge m = {.work = &work};
    uint32_t most = 3, total = 0, at = 0;

    for (int round = 0; round < 2; round++) {
        ck_assert_int_eq(merge_start(&m, 10), 0);
        for (uint32_t i = 0; i < 10; i++)
            merge_add(&m, i, 1, 1);
        ck_assert_int_eq(merge_run(&m, up_to, &most), 0);
        total = at = 0;
        for (size_t i = 0; i < m.n; i++) {
            if (!m.symbols[i].len)
                continue;
            ck_assert_uint_eq(m.symbols[i].at, at);
            ck_assert_uint_le(m.symbols[i].len, most);
            ck_assert_int_eq(m.symbols[i].id, (int32_t)m.symbols[i].len);
            at += m.symbols[i].len;
            total++;
        }
        ck_assert_uint_eq(at, 10);
        ck_assert_uint_eq(total, 4);
    }
    merge_clear(&m);
}
END_TEST

TCase *tcase_tokenizer_texts(void);
TCase *tcase_tokenizer_texts(void)
{
    TCase *tc = tcase_create("texts");

    tcase_add_test(tc, texts_are_found_by_what_they_say_however_many_there_are);
    tcase_add_test(tc, a_walk_meets_every_text_that_begins_a_string);
    tcase_add_test(tc, pairs_that_have_changed_are_forgotten);
    return tc;
}
