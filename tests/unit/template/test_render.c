/* Errors and their kinds, the source text, scopes that are easily got wrong. */
#include <check.h>

#include "tests/unit/template/render_helper.h"

TCase *tcase_template_render(void);

START_TEST(a_raised_exception_is_its_text_alone)
{
    struct rendered r;

    render(&r, "a\n{{ raise_exception('roles must alternate') }}", NULL, NULL, NULL);
    ck_assert_int_eq(r.err.kind, ERR_INVALID);
    ck_assert_str_eq(r.err.text, "roles must alternate");
}
END_TEST

START_TEST(a_fault_names_the_line)
{
    struct rendered r;

    render(&r, "a\n\n{{ nothing.at.all }}", NULL, NULL, NULL);
    ck_assert_int_eq(r.err.kind, ERR_UNPROCESSABLE);
    ck_assert_str_eq(r.err.text, "line 3 of the chat template: 'nothing' is undefined");
}
END_TEST

START_TEST(a_wrong_syntax_is_a_wrong_file)
{
    struct rendered r;

    render(&r, "{% if %}", NULL, NULL, NULL);
    ck_assert_int_eq(r.err.kind, ERR_FORMAT);
}
END_TEST

START_TEST(text_that_is_no_utf8_is_refused)
{
    ck_assert_str_eq(plain("a\xff"), "the chat template is not valid UTF-8");
}
END_TEST

START_TEST(all_line_ends_are_newlines)
{
    ck_assert_str_eq(plain("a\r\nb\rc\nd\r\n"), "a\nb\nc\nd");
}
END_TEST

START_TEST(a_variable_that_comes_later_wins)
{
    struct rendered r;

    render(&r, "{{ v }}", "{\"v\": 1}", "{\"v\": 2}", NULL);
    ck_assert_str_eq(r.shown, "2");
    rendered_clear(&r);
}
END_TEST

START_TEST(strings_keep_a_zero_byte)
{
    struct rendered r;

    render(&r, "{{ 'a\\0b' }}{{ 'a\\0b' | length }}", NULL, NULL, NULL);
    ck_assert_uint_eq(r.out.text.len, 4);
    ck_assert_int_eq(memcmp(r.out.text.p, "a\0b3", 4), 0);
    rendered_clear(&r);
}
END_TEST

START_TEST(appending_to_one_copy_does_not_change_another)
{
    ck_assert_str_eq(plain("{% set a = 'x' * 100 ~ '1' %}{% set b = a ~ '2' %}{% set c = a ~ '3' %}"
                           "{{ a[-1:] }} {{ b[-2:] }} {{ c[-2:] }}"),
                     "1 12 13");
}
END_TEST

START_TEST(a_list_that_grows_is_iterated_as_it_was)
{
    ck_assert_str_eq(plain("{% set l = [1, 2] %}{% for x in l %}{% set _ = l.append(x) %}"
                           "{% set _ = l.pop(0) %}{{ x }}{% endfor %}{{ l }}"),
                     "12[1, 2]");
}
END_TEST

START_TEST(a_macro_keeps_the_scope_it_was_made_in)
{
    ck_assert_str_eq(plain("{% set ns = namespace(m=[]) %}{% for i in [1, 2] %}"
                           "{% macro f() %}{{ i }}{% endmacro %}{% set ns.m = ns.m + [f] %}"
                           "{% endfor %}{% for f in ns.m %}{{ f() }}{% endfor %}"),
                     "12");
}
END_TEST

START_TEST(a_dict_finds_each_of_many_keys)
{
    ck_assert_str_eq(
        plain("{% set d = {} %}{% for i in range(500) %}{% set _ = d.update({i: i}) %}"
              "{% endfor %}{% for i in range(250) %}{% set _ = d.pop(i * 2) %}{% endfor %}"
              "{{ d | length }} {{ d[499] }} {{ d[498] is defined }} {{ 7 in d }}"),
        "250 499 False True");
}
END_TEST

START_TEST(equal_numbers_are_one_key)
{
    ck_assert_str_eq(plain("{{ {1: 'a', 1.0: 'b', true: 'c'} }}"), "{1: 'c'}");
}
END_TEST

TCase *tcase_template_render(void)
{
    TCase *tc = tcase_create("render");

    tcase_add_test(tc, a_raised_exception_is_its_text_alone);
    tcase_add_test(tc, a_fault_names_the_line);
    tcase_add_test(tc, a_wrong_syntax_is_a_wrong_file);
    tcase_add_test(tc, text_that_is_no_utf8_is_refused);
    tcase_add_test(tc, all_line_ends_are_newlines);
    tcase_add_test(tc, a_variable_that_comes_later_wins);
    tcase_add_test(tc, strings_keep_a_zero_byte);
    tcase_add_test(tc, appending_to_one_copy_does_not_change_another);
    tcase_add_test(tc, a_list_that_grows_is_iterated_as_it_was);
    tcase_add_test(tc, a_macro_keeps_the_scope_it_was_made_in);
    tcase_add_test(tc, a_dict_finds_each_of_many_keys);
    tcase_add_test(tc, equal_numbers_are_one_key);
    return tc;
}
