/* Typed getters, parsing and writing of JSON. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/utf8.h"
#include "tests/support/heap.h"

#define N(a) (int)(sizeof(a) / sizeof((a)[0]))

static json_t *parsed(const char *text)
{
    json_t *value = NULL;
    struct err err;

    ck_assert_msg(json_parse(text, strlen(text), &value, &err) == 0, "%s", err.text);
    return value;
}

START_TEST(a_tree_takes_no_more_of_the_heap_than_was_counted)
{
    static const char *const items[] = {"[]",
                                        "{}",
                                        "0",
                                        "\"\"",
                                        "{\"a\":0}",
                                        "[[],{\"b\":[1.5]}]",
                                        "\"a\\\"[[[,,,\"",
                                        "{\"abcdefgh\":{\"i\":null}}"};
    const size_t n = 20000;
    struct str text = {0};
    json_t *value = NULL;
    size_t before, most;

    if (!heap_counts())
        return;
    str_addc(&text, '[');
    for (size_t i = 0; i < n; i++)
        str_addf(&text, "%s%s", i ? "," : "", items[_i]);
    str_addc(&text, ']');
    most = json_tree_bytes(text.p, text.len);
    before = heap_used();
    ck_assert_int_eq(json_parse(text.p, text.len, &value, NULL), 0);
    ck_assert_uint_le(heap_used() - before, most);
    ck_assert_uint_ge(most, text.len);
    json_decref(value);
    str_clear(&text);
}
END_TEST

/* Also where the rest has as many quotes as it would take to be counted as text. */
START_TEST(a_tree_behind_an_escaped_quote_is_counted)
{
    struct str plain = {0}, escaped = {0};

    str_adds(&plain, "{\"a\":\"xx\",\"b\":[");
    str_adds(&escaped, "{\"a\":\"x\\\"\",\"b\":[");
    for (int i = 0; i < 1000; i++) {
        str_adds(&plain, i ? ",[]" : "[]");
        str_adds(&escaped, i ? ",[]" : "[]");
    }
    str_adds(&plain, "]}");
    str_adds(&escaped, "]}");
    ck_assert_uint_eq(json_tree_bytes(escaped.p, escaped.len),
                      json_tree_bytes(plain.p, plain.len) + 1);
    /* An end in the middle of an escape is no structure. */
    ck_assert_uint_eq(json_tree_bytes("\"\\", 2), json_tree_bytes("\"[", 2));
    str_clear(&plain);
    str_clear(&escaped);
}
END_TEST

START_TEST(what_is_absent_or_null_leaves_the_default)
{
    json_t *o = parsed("{\"n\":null}");
    int64_t i = 5;
    double d = 0.5;
    bool b = true;
    const char *s = "x";

    ck_assert_int_eq(json_get_int(o, "n", 0, 9, &i, NULL), 0);
    ck_assert_int_eq(json_get_double(o, "m", 0, 9, &d, NULL), 0);
    ck_assert_int_eq(json_get_bool(o, "n", &b, NULL), 0);
    ck_assert_int_eq(json_get_string(o, "n", &s, NULL), 0);
    ck_assert_int_eq(json_get_int(NULL, "n", 0, 9, &i, NULL), 0);
    ck_assert_int_eq(i, 5);
    ck_assert_double_eq(d, 0.5);
    ck_assert(b);
    ck_assert_str_eq(s, "x");
    json_decref(o);
}
END_TEST

START_TEST(what_is_there_is_read)
{
    json_t *o = parsed("{\"i\":7,\"r\":3.0,\"d\":0.25,\"t\":true,\"f\":false,\"s\":\"hi\"}");
    int64_t i = 0;
    double d = 0;
    bool b = false;
    const char *s = NULL;

    ck_assert_int_eq(json_get_int(o, "i", 0, 9, &i, NULL), 1);
    ck_assert_int_eq(i, 7);
    ck_assert_int_eq(json_get_int(o, "r", 0, 9, &i, NULL), 1);
    ck_assert_int_eq(i, 3);
    ck_assert_int_eq(json_get_double(o, "i", 0, 9, &d, NULL), 1);
    ck_assert_double_eq(d, 7);
    ck_assert_int_eq(json_get_double(o, "d", 0, 1, &d, NULL), 1);
    ck_assert_double_eq(d, 0.25);
    ck_assert_int_eq(json_get_bool(o, "t", &b, NULL), 1);
    ck_assert(b);
    ck_assert_int_eq(json_get_bool(o, "f", &b, NULL), 1);
    ck_assert(!b);
    ck_assert_int_eq(json_get_string(o, "s", &s, NULL), 1);
    ck_assert_str_eq(s, "hi");
    json_decref(o);
}
END_TEST

START_TEST(a_wrong_type_names_the_field_and_both_types)
{
    json_t *o = parsed("{\"a\":\"1\",\"b\":1.5,\"c\":[],\"d\":{},\"e\":1}");
    struct err err;
    int64_t i = 5;
    double d = 5;
    bool b = true;
    const char *s = "x";

    ck_assert_int_eq(json_get_int(o, "a", 0, 9, &i, &err), -ERR_INVALID);
    ck_assert_str_eq(err.text, "'a' must be an integer, not a string");
    ck_assert_str_eq(err.param, "a");
    ck_assert_int_eq(json_get_int(o, "b", 0, 9, &i, &err), -ERR_INVALID);
    ck_assert_int_eq(json_get_double(o, "c", 0, 9, &d, &err), -ERR_INVALID);
    ck_assert_str_eq(err.text, "'c' must be a number, not an array");
    ck_assert_int_eq(json_get_string(o, "d", &s, &err), -ERR_INVALID);
    ck_assert_int_eq(json_get_bool(o, "e", &b, &err), -ERR_INVALID);
    ck_assert_str_eq(err.text, "'e' must be true or false, not an integer");
    ck_assert_int_eq(i, 5);
    ck_assert_double_eq(d, 5);
    ck_assert(b);
    ck_assert_str_eq(s, "x");
    json_decref(o);
}
END_TEST

START_TEST(a_number_outside_its_range_is_refused)
{
    json_t *o = parsed("{\"a\":10,\"b\":-1,\"c\":2.5,\"d\":1e300,\"e\":9223372036854775808.0,"
                       "\"f\":-9223372036854775808.0}");
    struct err err;
    int64_t i = 5;
    double d = 5;

    ck_assert_int_eq(json_get_int(o, "a", 0, 9, &i, &err), -ERR_INVALID);
    ck_assert_str_eq(err.text, "'a' is 10; it must be from 0 to 9");
    ck_assert_str_eq(err.param, "a");
    ck_assert_int_eq(json_get_int(o, "b", 0, 9, &i, &err), -ERR_INVALID);
    ck_assert_int_eq(json_get_double(o, "c", 0, 2, &d, &err), -ERR_INVALID);
    ck_assert_str_eq(err.text, "'c' is 2.5; it must be from 0 to 2");
    ck_assert_int_eq(json_get_int(o, "d", INT64_MIN, INT64_MAX, &i, &err), -ERR_INVALID);
    ck_assert_int_eq(json_get_int(o, "e", INT64_MIN, INT64_MAX, &i, &err), -ERR_INVALID);
    ck_assert_int_eq(i, 5);
    ck_assert_int_eq(json_get_int(o, "f", INT64_MIN, INT64_MAX, &i, &err), 1);
    ck_assert(i == INT64_MIN);
    json_decref(o);
}
END_TEST

static const char *const keys[] = {"temperature", "top_p", "max_tokens", "stream", NULL};

START_TEST(an_unknown_field_is_named_with_the_nearest_known)
{
    json_t *o = parsed("{\"top_p\":1,\"temprature\":1}");
    struct err err;

    ck_assert_int_eq(json_only_keys(o, keys, &err), -ERR_INVALID);
    ck_assert_str_eq(err.text, "the field 'temprature' is not known; did you mean 'temperature'?");
    ck_assert_str_eq(err.param, "temprature");
    json_decref(o);
}
END_TEST

START_TEST(a_field_that_is_near_to_none_gets_no_guess)
{
    json_t *o = parsed("{\"zzzzzzzz\":1}");
    struct err err;

    ck_assert_int_eq(json_only_keys(o, keys, &err), -ERR_INVALID);
    ck_assert_str_eq(err.text, "the field 'zzzzzzzz' is not known; leave it out");
    json_decref(o);
}
END_TEST

START_TEST(known_fields_and_no_fields_pass)
{
    json_t *o = parsed("{\"stream\":1,\"top_p\":1}"), *none = parsed("{}");

    ck_assert_int_eq(json_only_keys(o, keys, NULL), 0);
    ck_assert_int_eq(json_only_keys(none, keys, NULL), 0);
    ck_assert_int_eq(json_only_keys(NULL, keys, NULL), 0);
    json_decref(o);
    json_decref(none);
}
END_TEST

START_TEST(a_hostile_field_name_makes_a_readable_sentence)
{
    json_t *o = json_object();
    char key[3001];
    struct err err;

    for (int i = 0; i < 3000; i += 3)
        memcpy(key + i, "\xE2\x82\xAC", 4);
    json_object_set_new(o, key, json_true());
    ck_assert_int_eq(json_only_keys(o, keys, &err), -ERR_INVALID);
    ck_assert(utf8_valid(err.text, strlen(err.text)));
    ck_assert_uint_lt(strlen(err.text), 200);
    json_object_clear(o);
    json_object_set_new(o, "a\n\x1B", json_true());
    ck_assert_int_eq(json_only_keys(o, keys, &err), -ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.text, "'a?"
                                           "?'"));
    json_object_clear(o);
    json_object_set_new(o, "", json_true());
    ck_assert_int_eq(json_only_keys(o, keys, &err), -ERR_INVALID);
    json_decref(o);
}
END_TEST

static const char *const bad[] = {
    "",
    " ",
    "{",
    "{\"a\":1,}",
    "{\"a\":1,\"a\":2}",
    "[1] x",
    "{a:1}",
    "'a'",
    "01",
    "1e999",
    "99999999999999999999999",
    "NaN",
    "\"\xFF\"",
    "\"\\ud800\"",
    "\"a\\u0000b\"",
    "\"a\nb\"",
    "\x1B[2J",
};

START_TEST(what_is_no_json_is_refused_with_its_place)
{
    json_t *value = NULL;
    struct err err;

    ck_assert_int_eq(json_parse(bad[_i], strlen(bad[_i]), &value, &err), -ERR_PARSE);
    ck_assert_ptr_null(value);
    ck_assert_ptr_nonnull(strstr(err.text, "line 1, column"));
    for (const char *p = err.text; *p; p++)
        ck_assert(*p >= 0x20 && *p < 0x7F);
}
END_TEST

START_TEST(the_line_of_a_fault_is_counted)
{
    json_t *value;
    struct err err;

    ck_assert_int_eq(json_parse("{\n\n  x}", 7, &value, &err), -ERR_PARSE);
    ck_assert_ptr_nonnull(strstr(err.text, "line 3, column 3"));
    ck_assert_int_eq(json_parse(NULL, 0, &value, &err), -ERR_PARSE);
    ck_assert_int_eq(json_parse("{}\0", 3, &value, &err), -ERR_PARSE);
}
END_TEST

START_TEST(endless_nesting_is_refused)
{
    size_t n = 100000;
    char *text = malloc(n);
    json_t *value;
    struct err err;

    memset(text, '[', n);
    ck_assert_int_eq(json_parse(text, n, &value, &err), -ERR_PARSE);
    free(text);
}
END_TEST

START_TEST(the_deepest_allowed_value_can_be_written)
{
    struct str in = {0}, out = {0};
    json_t *value = NULL;

    for (int i = 0; i < 2047; i++)
        str_addc(&in, '[');
    for (int i = 0; i < 2047; i++)
        str_addc(&in, ']');
    ck_assert_int_eq(json_parse(in.p, in.len, &value, NULL), 0);
    json_dump_to(value, &out);
    ck_assert_str_eq(out.p, in.p);
    json_decref(value);
    str_clear(&in);
    str_clear(&out);
}
END_TEST

/* Written exactly as read. */
static const char *const same[] = {
    "null",
    "true",
    "false",
    "0",
    "-9223372036854775808",
    "\"\"",
    "{}",
    "[]",
    "[[],{},\"\",0]",
    "{\"z\":1,\"a\":[1,2],\"m\":{\"k\":null}}",
    "\"\\\"\\\\\\b\\f\\n\\r\\t\\u0001\\u001f\x7F/\"",
    "\"\xE2\x82\xAC\xF0\x9F\x98\x80\"",
    "0.1",
    "0.7",
    "-1.5",
    "1e+300",
    "5e-324",
    "1.0",
    "0.30000000000000004",
    "2.2250738585072014e-308",
    "123456789012345680.0",
};

START_TEST(compact_text_is_written_as_it_was_read)
{
    json_t *value = parsed(same[_i]);
    struct str out = {0};

    json_dump_to(value, &out);
    if (json_is_real(value)) {
        json_t *again = parsed(out.p);

        ck_assert(json_is_real(again));
        ck_assert(json_real_value(again) == json_real_value(value));
        json_decref(again);
    } else {
        ck_assert_str_eq(out.p, same[_i]);
    }
    json_decref(value);
    str_clear(&out);
}
END_TEST

START_TEST(short_numbers_stay_short)
{
    struct str out = {0};
    json_t *value = parsed("[0.1,0.7,1.0,1e300]");

    json_dump_to(value, &out);
    ck_assert_str_eq(out.p, "[0.1,0.7,1.0,1e+300]");
    json_decref(value);
    str_clear(&out);
}
END_TEST

START_TEST(any_bytes_become_a_string)
{
    json_t *s = json_text("a\xFF\xE2\x82z", 5);

    ck_assert_str_eq(json_string_value(s), "a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDz");
    json_decref(s);
    s = json_text("\xE2\x82\xAC", 3);
    ck_assert_str_eq(json_string_value(s), "\xE2\x82\xAC");
    json_decref(s);
    s = json_text(NULL, 0);
    ck_assert_str_eq(json_string_value(s), "");
    json_decref(s);
    s = json_text("a\0b", 3);
    ck_assert_uint_eq(json_string_length(s), 3);
    json_decref(s);
}
END_TEST

START_TEST(a_zero_in_a_string_is_written_escaped)
{
    json_t *s = json_text("a\0b", 3);
    struct str out = {0};

    json_dump_to(s, &out);
    ck_assert_str_eq(out.p, "\"a\\u0000b\"");
    json_decref(s);
    str_clear(&out);
}
END_TEST

TCase *tcase_common_json(void);
TCase *tcase_common_json(void)
{
    TCase *tc = tcase_create("json");

    tcase_add_loop_test(tc, a_tree_takes_no_more_of_the_heap_than_was_counted, 0, 8);
    tcase_add_test(tc, a_tree_behind_an_escaped_quote_is_counted);
    tcase_add_test(tc, what_is_absent_or_null_leaves_the_default);
    tcase_add_test(tc, what_is_there_is_read);
    tcase_add_test(tc, a_wrong_type_names_the_field_and_both_types);
    tcase_add_test(tc, a_number_outside_its_range_is_refused);
    tcase_add_test(tc, an_unknown_field_is_named_with_the_nearest_known);
    tcase_add_test(tc, a_field_that_is_near_to_none_gets_no_guess);
    tcase_add_test(tc, known_fields_and_no_fields_pass);
    tcase_add_test(tc, a_hostile_field_name_makes_a_readable_sentence);
    tcase_add_loop_test(tc, what_is_no_json_is_refused_with_its_place, 0, N(bad));
    tcase_add_test(tc, the_line_of_a_fault_is_counted);
    tcase_add_test(tc, endless_nesting_is_refused);
    tcase_add_test(tc, the_deepest_allowed_value_can_be_written);
    tcase_add_loop_test(tc, compact_text_is_written_as_it_was_read, 0, N(same));
    tcase_add_test(tc, short_numbers_stay_short);
    tcase_add_test(tc, any_bytes_become_a_string);
    tcase_add_test(tc, a_zero_in_a_string_is_written_escaped);
    return tc;
}
