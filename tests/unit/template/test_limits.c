/* A hostile template gets an error, soon, and never more than its limits. */
#include <check.h>
#include <stdlib.h>
#include <time.h>

#include "common/alloc.h"
#include "common/str.h"
#include "tests/unit/template/render_helper.h"

TCase *tcase_template_limits(void);

static const char *const hostile[] = {
    "{{ 'x' * 10**9 }}",
    "{{ 'x' * 10**30 }}",
    "{{ [0] * 10**9 }}",
    "{{ range(10**9) | list }}",
    "{% for a in range(99999) %}{% for b in range(99999) %}{{ a }}{% endfor %}{% endfor %}",
    "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "{% macro m(n) %}{{ m(n ~ n) }}{% endmacro %}{{ m('xxxxxxxxxxxxxxxx') }}",
    "{% set n = namespace(s='x') %}{% for i in range(64) %}{% set n.s = n.s ~ n.s %}{% endfor %}",
    "{% set n = namespace(l=[1]) %}{% for i in range(64) %}{% set n.l = n.l + n.l %}{% endfor %}",
    "{% set l = [] %}{% set _ = l.append(l) %}{{ l }}",
    "{% set l = [] %}{% set _ = l.append(l) %}{{ l | tojson }}",
    "{% set l = [] %}{% set k = [l] %}{% set _ = l.append(k) %}{{ l == k }}",
    "{% set l = [1] %}{% for x in range(99999) %}{% set _ = l.extend(l) %}{% endfor %}",
    "{{ '%99999d' % 1 * 99999 }}",
    "{{ 'a' | indent(10**12) }}",
    "{{ 'a'.center(10**12) }}",
    "{{ 2 ** 100000 }}",
    "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
    "{{ ('a' * 100000).replace('', 'b' * 100000) }}",
    "{{ (['a'] * 50000) | join('b' * 100000) }}",
    "{%set n=namespace(d=1)%}{%for i in range(9999)%}{%set n.d=[n.d]%}{%endfor%}{{ n }}",
    "{%set n=namespace(d=1)%}{%for i in range(9999)%}{%set n.d=(n.d,)%}{%endfor%}{{ {n.d:1} }}",
    "{%set n=namespace(d=1)%}{%for i in range(9999)%}{%set n.d=(n.d,)%}{%endfor%}{{ {}[n.d] }}",
    "{{ ('a ' * 1000000).split() | map('center', 1000) | list }}",
    "{% for i in range(99999) %}{{ ('a' * 60000000) is lower }}{% endfor %}",
    "{% for i in range(99999) %}{{ ('a' * 600000)[300000] }}{% endfor %}",
    "{% for i in range(99999) %}{{ range(99999) | sort }}{% endfor %}",
    "{% for i in range(99999) %}{% set x = ('a' * 6000000) == ('a' * 6000000) %}{% endfor %}",
};

START_TEST(a_hostile_template_is_stopped)
{
    clock_t start = clock(); /* time of the processor: others' work on it does not count */
    struct rendered r;

    render(&r, hostile[_i], NULL, NULL, NULL);
    ck_assert_msg(r.r < 0, "'%s' was rendered", hostile[_i]);
    ck_assert_msg(clock() - start < 8 * CLOCKS_PER_SEC, "'%s' took longer than 8 s", hostile[_i]);
}
END_TEST

START_TEST(steps_are_counted)
{
    struct template_limits few = {.steps = 100};
    struct rendered r;

    render(&r, "{% for i in range(99) %}{{ i }}{% endfor %}", NULL, NULL, &few);
    ck_assert_int_eq(r.err.kind, ERR_TOO_LARGE);
    ck_assert_ptr_nonnull(strstr(r.err.text, "100 steps"));
}
END_TEST

START_TEST(output_is_bounded)
{
    struct template_limits small = {.output_bytes = 10};
    struct rendered r;

    render(&r, "{{ 'ten bytes!' }}", NULL, NULL, &small);
    ck_assert_int_eq(r.r, 0);
    rendered_clear(&r);
    render(&r, "{{ 'ten bytes!' }}x", NULL, NULL, &small);
    ck_assert_int_eq(r.err.kind, ERR_TOO_LARGE);
}
END_TEST

START_TEST(memory_is_bounded)
{
    struct template_limits small = {.memory_bytes = 1 << 20};
    struct rendered r;

    render(&r, "{{ range(90000) | list | length }}", NULL, NULL, &small);
    ck_assert_int_eq(r.err.kind, ERR_TOO_LARGE);
    ck_assert_ptr_nonnull(strstr(r.err.text, "1 MiB"));
}
END_TEST

START_TEST(depth_is_bounded)
{
    struct template_limits flat = {.depth = 20};
    struct rendered r;

    render(&r, "{{ [[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]] }}", NULL, NULL, &flat);
    ck_assert_int_eq(r.err.kind, ERR_TOO_LARGE);
}
END_TEST

START_TEST(a_text_of_brackets_is_refused_by_the_parser)
{
    static const char *const parts[] = {"[",    "(",          "{{ {1:",           "-",
                                        "not ", "{% if 1 %}", "{% for a in b %}", "1 if 2 else "};
    struct str text = {0};
    struct rendered r;

    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        str_truncate(&text, 0);
        if (parts[i][0] != '{')
            str_adds(&text, "{{ ");
        for (int k = 0; k < 100000; k++)
            str_adds(&text, parts[i]);
        render(&r, text.p, NULL, NULL, NULL);
        ck_assert_int_eq(r.err.kind, ERR_FORMAT);
    }
    str_clear(&text);
}
END_TEST

START_TEST(a_long_chain_of_operators_ends_at_the_depth)
{
    struct str text = {0};
    struct rendered r;

    str_adds(&text, "{{ 1");
    for (int k = 0; k < 100000; k++)
        str_adds(&text, "+1");
    str_adds(&text, " }}");
    render(&r, text.p, NULL, NULL, NULL);
    ck_assert_int_eq(r.err.kind, ERR_TOO_LARGE);
    str_clear(&text);
}
END_TEST

START_TEST(a_long_conversation_is_no_hostile_template)
{
    struct str json = {0};
    struct rendered r;

    str_adds(&json, "{\"messages\": [");
    for (int i = 0; i < 2000; i++)
        str_addf(&json, "%s{\"role\": \"user\", \"content\": \"%01000d\"}", i ? "," : "", i);
    str_adds(&json, "]}");
    render(&r,
           "{% set ns = namespace(t='') %}{% for m in messages %}{% set ns.t = ns.t + m.content %}"
           "{% endfor %}{{ ns.t | length }}",
           NULL, json.p, NULL);
    ck_assert_str_eq(r.r == 0 ? r.shown : r.err.text, "2000000");
    rendered_clear(&r);
    str_clear(&json);
}
END_TEST

TCase *tcase_template_limits(void)
{
    TCase *tc = tcase_create("limits");

    tcase_add_loop_test(tc, a_hostile_template_is_stopped, 0, ARRAY_LEN(hostile));
    tcase_add_test(tc, steps_are_counted);
    tcase_add_test(tc, output_is_bounded);
    tcase_add_test(tc, memory_is_bounded);
    tcase_add_test(tc, depth_is_bounded);
    tcase_add_test(tc, a_text_of_brackets_is_refused_by_the_parser);
    tcase_add_test(tc, a_long_chain_of_operators_ends_at_the_depth);
    tcase_add_test(tc, a_long_conversation_is_no_hostile_template);
    return tc;
}
