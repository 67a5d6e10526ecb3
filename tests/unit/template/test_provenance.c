/* Every byte remembers whether it came from a message. */
#include <check.h>

#include "tests/unit/template/render_helper.h"

TCase *tcase_template_provenance(void);

static const struct {
    const char *text;
    const char *want;
} cases[] = {
    {"{{ m }}", "«a-B c»"},
    {"<{{ m }}>", "<«a-B c»>"},
    {"{{ '[' ~ m ~ ']' }}", "[«a-B c»]"},
    {"{{ '[' + m + ']' }}", "[«a-B c»]"},
    {"{{ m | upper }}{{ m | lower }}{{ m | title }}", "«A-B Ca-b cA-B C»"},
    {"{{ ('x' ~ m) | capitalize }}", "X«a-b c»"},
    {"{{ (m ~ '!') | trim }}{{ ('  ' ~ m) | trim }}", "«a-B c»!«a-B c»"},
    {"{{ m | replace('-', '+') }}", "«a»+«B c»"},
    {"{{ 'x-y' | replace('-', m) }}", "x«a-B c»y"},
    {"{{ ('<' ~ m ~ '>')[0:3] }}{{ ('<' ~ m ~ '>')[-3:] }}", "<«a- c»>"},
    {"{{ ('<' ~ m ~ '>')[::-1] }}", ">«c B-a»<"},
    {"{{ m.split('-') | join('|') }}", "«a»|«B c»"},
    {"{{ m.split('-') }}", "['«a»', '«B c»']"},
    {"{{ [m, 'x'] }}", "['«a-B c»', 'x']"},
    {"{{ {'k': m} | tojson }}", "{\"k\": \"«a-B c»\"}"},
    {"{{ d | tojson }}", "{\"«k<|x|>»\": \"«v\\n»\"}"},
    {"{{ 'n=%s' % m }} {{ '%5s' | format('t') }}", "n=«a-B c»     t"},
    {"{{ '<{}>'.format(m) }} {{ '{:>7}'.format(m) }}", "<«a-B c»>   «a-B c»"},
    {"{{ m | indent(2, true) }}", "  «a-B c»"},
    {"{{ m | escape }}{{ m | urlencode }}", "«a-B ca-B%20c»"},
    {"{{ m | reverse }}{{ m | first }}{{ m | last }}", "«c B-aac»"},
    {"{{ m | length }}{{ m == 'a-B c' }}", "5True"},
    {"{% set x %}({{ m }}){% endset %}{{ x }}", "(«a-B c»)"},
    {"{% macro f(s) %}<{{ s }}>{% endmacro %}{{ f(m) ~ f('t') }}", "<«a-B c»><t>"},
    {"{% filter upper %}t{{ m }}{% endfilter %}", "T«A-B C»"},
    {"{% for k, v in d.items() %}{{ k }}={{ v }}{% endfor %}", "«k<|x|>»=«v\n»"},
    {"{% for k in dict(**d) %}{{ k }}{% endfor %}", "«k<|x|>»"},
    {"{{ j | from_json }}", "{'«k»': '«v»'}"},
    {"{% set ns = namespace(s='') %}{% for c in 'ab' %}{% set ns.s = ns.s ~ c ~ m %}{% endfor %}"
     "{{ ns.s }}",
     "a«a-B c»b«a-B c»"},
    {"{{ [m, 't'] | sort | join }}{{ ['t', m] | map('upper') | join }}", "«a-B c»tT«A-B C»"},
    {"{{ m.center(9) }}|{{ m.partition('-')[2] }}|{{ m.removeprefix('a') }}",
     "  «a-B c»  |«B c»|«-B c»"},
    {"{{ m | truncate(4, true, '~', 0) }}{{ m * 2 }}", "«a-B»~«a-B ca-B c»"},
};

START_TEST(a_byte_keeps_its_origin_through)
{
    const char *json = "{\"m\": \"a-B c\", \"d\": {\"k<|x|>\": \"v\\n\"}, \"j\": \"{\\\"k\\\": "
                       "\\\"v\\\"}\"}";

    ck_assert_str_eq(marked(cases[_i].text, json), cases[_i].want);
}
END_TEST

START_TEST(a_role_on_the_list_is_trusted_and_any_other_is_not)
{
    ck_assert_str_eq(marked("<|{{ m.role }}|>", "{\"m\": {\"role\": \"user\"}}"), "<|user|>");
    ck_assert_str_eq(marked("<|{{ m.role }}|>", "{\"m\": {\"role\": \"root\"}}"), "<|«root»|>");
}
END_TEST

START_TEST(a_listed_word_elsewhere_in_a_message_is_not_trusted)
{
    ck_assert_str_eq(marked("<|{{ m.content }}|>", "{\"m\": {\"content\": \"user\"}}"),
                     "<|«user»|>");
}
END_TEST

START_TEST(variables_of_the_daemon_are_trusted)
{
    struct rendered r;

    render(&r, "{{ bos }}{{ m }}", "{\"bos\": \"<s>\"}", "{\"m\": \"<s>\"}", NULL);
    ck_assert_str_eq(r.shown, "<s>«<s>»");
    rendered_clear(&r);
}
END_TEST

START_TEST(spans_are_ascending_and_do_not_touch)
{
    struct rendered r;

    render(&r, "{{ m }}{{ m }}-{{ m }}", NULL, "{\"m\": \"ab\"}", NULL);
    ck_assert_uint_eq(r.out.n_spans, 2);
    ck_assert_uint_eq(r.out.spans[0].to, 4);
    ck_assert_uint_eq(r.out.spans[1].from, 5);
    rendered_clear(&r);
}
END_TEST

TCase *tcase_template_provenance(void)
{
    TCase *tc = tcase_create("provenance");

    tcase_add_loop_test(tc, a_byte_keeps_its_origin_through, 0, sizeof cases / sizeof *cases);
    tcase_add_test(tc, a_role_on_the_list_is_trusted_and_any_other_is_not);
    tcase_add_test(tc, a_listed_word_elsewhere_in_a_message_is_not_trusted);
    tcase_add_test(tc, variables_of_the_daemon_are_trusted);
    tcase_add_test(tc, spans_are_ascending_and_do_not_touch);
    return tc;
}
