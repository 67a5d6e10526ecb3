/* Stop strings across pieces. */
#include <check.h>
#include <string.h>

#include "daemon/engine/stop.h"

TCase *tcase_engine_stop(void);

/* Feeds text in pieces of `cut` bytes; returns which pattern matched. */
static int run(const char *const *stops, size_t n, const char *text, size_t cut, struct str *out)
{
    struct stop_filter f;
    size_t len = strlen(text);
    int matched;

    stop_init(&f);
    for (size_t i = 0; i < n; i++)
        stop_add(&f, view_of(stops[i]));
    for (size_t at = 0; at < len; at += cut)
        if (stop_feed(&f, view_sub(view_of(text), at, cut), out))
            break;
    if (f.matched < 0)
        stop_finish(&f, out);
    matched = f.matched;
    stop_clear(&f);
    return matched;
}

static const struct {
    const char *stops[3];
    const char *text;
    const char *want;
    int matched;
} cases[] = {
    {{"STOP"}, "before STOP after", "before ", 0},
    {{"STOP"}, "no end in sight ST", "no end in sight ST", -1},
    {{"STOP"}, "STSTSTOP", "STST", 0},
    {{"aab"}, "aaaaab!", "aaa", 0},
    {{"abab"}, "abaabab", "aba", 0},
    {{"end", "\n\n"}, "one\ntwo\n\nend", "one\ntwo", 1},
    /* The one that ends first, not the one that begins first. */
    {{"abc", "b"}, "xabcx", "xa", 1},
    /* Of two that end together the longer. */
    {{"c", "abc"}, "xabc", "x", 1},
    {{"é"}, "caf\xc3\xa8 caf\xc3\xa9", "caf\xc3\xa8 caf", 0},
    {{""}, "an empty one matches nothing", "an empty one matches nothing", -1},
    {{"x"}, "", "", -1},
};

START_TEST(the_text_before_the_match_comes_out_however_it_is_cut)
{
    size_t n = 0;

    while (n < 3 && cases[_i].stops[n])
        n++;
    for (size_t cut = 1; cut <= strlen(cases[_i].text) + 1; cut++) {
        struct str out = {0};

        ck_assert_int_eq(run(cases[_i].stops, n, cases[_i].text, cut, &out), cases[_i].matched);
        ck_assert_str_eq(str_text(&out), cases[_i].want);
        str_clear(&out);
    }
}
END_TEST

START_TEST(only_what_may_become_a_stop_string_is_held_back)
{
    struct stop_filter f;
    struct str out = {0};

    stop_init(&f);
    stop_add(&f, view_of("\nUser:"));
    stop_feed(&f, view_of("hello\nUs"), &out);
    ck_assert_str_eq(str_text(&out), "hello");
    stop_feed(&f, view_of("able"), &out);
    ck_assert_str_eq(str_text(&out), "hello\nUsable");
    stop_clear(&f);
    str_clear(&out);
}
END_TEST

START_TEST(nothing_comes_out_behind_a_match_and_a_reset_begins_again)
{
    struct stop_filter f;
    struct str out = {0};

    stop_init(&f);
    stop_add(&f, view_of("."));
    ck_assert(stop_feed(&f, view_of("a.b"), &out));
    ck_assert(stop_feed(&f, view_of("c"), &out));
    ck_assert_str_eq(str_text(&out), "a");
    stop_reset(&f);
    ck_assert(!stop_feed(&f, view_of("b"), &out));
    ck_assert_str_eq(str_text(&out), "ab");
    stop_clear(&f);
    str_clear(&out);
}
END_TEST

TCase *tcase_engine_stop(void)
{
    TCase *tc = tcase_create("stop");

    tcase_add_loop_test(tc, the_text_before_the_match_comes_out_however_it_is_cut, 0,
                        sizeof cases / sizeof *cases);
    tcase_add_test(tc, only_what_may_become_a_stop_string_is_held_back);
    tcase_add_test(tc, nothing_comes_out_behind_a_match_and_a_reset_begins_again);
    return tc;
}
