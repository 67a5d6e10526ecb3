/* The grammar of the configuration file. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/ini.h"
#include "common/str.h"
#include "tests/support/scratch.h"

#define N(a) (int)(sizeof(a) / sizeof((a)[0]))

/* Writes "line section/name key=value;" for each entry. */
static int collect(void *arg, const struct ini_entry *e, struct err *err)
{
    (void)err;
    str_addf(arg, "%d %s/%s %s=%s;", e->line, e->section, e->name, e->key, e->value);
    return 0;
}

static const struct {
    const char *text;
    const char *entries;
} good[] = {
    {"", ""},
    {"\n\n# nothing\n   # here\n", ""},
    {"a = b", "1 / a=b;"},
    {"a=b\n", "1 / a=b;"},
    {"[s]\na = b\n\nc = d\n", "2 s/ a=b;4 s/ c=d;"},
    {"[model small]\nfile = /x y.gguf\n", "2 model/small file=/x y.gguf;"},
    {"[ model   my model ]\nctx = 1\n", "2 model/my model ctx=1;"},
    {"[a]\nx=1\n[b]\nx=2\n[a]\nx=3\n", "2 a/ x=1;4 b/ x=2;6 a/ x=3;"},
    {"[a]\n[b]\nx=1", "3 b/ x=1;"},
    {"\xEF\xBB\xBF[a]\nx=1", "2 a/ x=1;"},
    {"a = b\r\nc = d\r\n", "1 / a=b;2 / c=d;"},
    {"a =\n", "1 / a=;"},
    {"a = b # not a comment ; neither\n", "1 / a=b # not a comment ; neither;"},
    {"a = x=y:z\n", "1 / a=x=y:z;"},
    {"a = 127.0.0.1:8000\n", "1 / a=127.0.0.1:8000;"},
    {"a = \"quoted\"\n", "1 / a=\"quoted\";"},
    {"a = b\n   c = d\n", "1 / a=b;2 / c=d;"},
    {"a = \xC3\xA9\n", "1 / a=\xC3\xA9;"},
    {"a = [x]\n", "1 / a=[x];"},
};

START_TEST(entries_come_with_section_and_line)
{
    struct str seen = {0};
    struct err err;

    ck_assert_msg(ini_read_text("f", good[_i].text, collect, &seen, &err) == 0, "%s", err.text);
    ck_assert_str_eq(str_text(&seen), good[_i].entries);
    str_clear(&seen);
}
END_TEST

static const struct {
    const char *text;
    const char *begins;
} bad[] = {
    {"nonsense", "f:1: "},
    {"\n[s]\na\n", "f:3: "},
    {"[s\na=b", "f:1: the section head has no ']'"},
    {"[]\n", "f:1: the section head names no section"},
    {"[  ]\n", "f:1: the section head names no section"},
    {"[a] b\n", "f:1: nothing may follow"},
    {"[a]b]\n", "f:1: nothing may follow"},
    {"= b\n", "f:1: there is no key"},
    {"a : b\n", "f:1: "},
    {"a:b = c\n", "f:1: a key may not contain ':'"},
    {"; old comment\n", "f:1: "},
    {"x=1\n a \n", "f:2: "},
    {"a = \x1B[2J\n", "f:1: the line holds a control character"},
    {"a = b\rc\n", "f:1: the line holds a control character"},
    {"a = \xFF\n", "f: the file is not valid UTF-8"},
};

START_TEST(what_is_no_entry_is_refused_with_file_and_line)
{
    struct str seen = {0};
    struct err err;

    ck_assert_int_eq(ini_read_text("f", bad[_i].text, collect, &seen, &err), -ERR_INVALID);
    ck_assert_msg(strncmp(err.text, bad[_i].begins, strlen(bad[_i].begins)) == 0, "%s", err.text);
    str_clear(&seen);
}
END_TEST

static int refuse_b(void *arg, const struct ini_entry *e, struct err *err)
{
    ++*(int *)arg;
    if (strcmp(e->key, "b") == 0)
        return err_set_param(err, ERR_UNSUPPORTED, "b", "the key '%s' is not known", e->key);
    return 0;
}

START_TEST(the_handlers_error_comes_back_with_its_place_and_ends_it)
{
    struct err err;
    int n = 0;

    ck_assert_int_eq(ini_read_text("f", "a=1\n[s]\n\nb=2\nc=3\nb=4\n", refuse_b, &n, &err),
                     -ERR_UNSUPPORTED);
    ck_assert_str_eq(err.text, "f:4: the key 'b' is not known");
    ck_assert_str_eq(err.param, "b");
    ck_assert_int_eq(n, 2);
    ck_assert_int_eq(ini_read_text("f", "b=1", refuse_b, &n, NULL), -ERR_UNSUPPORTED);
}
END_TEST

START_TEST(a_fault_of_form_ends_it_too)
{
    struct err err;
    int n = 0;

    ck_assert_int_eq(ini_read_text("f", "a=1\nrubbish\na=2\n", refuse_b, &n, &err), -ERR_INVALID);
    ck_assert_int_eq(n, 1);
}
END_TEST

static int measure(void *arg, const struct ini_entry *e, struct err *err)
{
    size_t *lengths = arg;

    (void)err;
    lengths[0] = strlen(e->section);
    lengths[1] = strlen(e->name);
    lengths[2] = strlen(e->key);
    lengths[3] = strlen(e->value);
    return 0;
}

START_TEST(long_names_and_values_are_whole)
{
    struct str text = {0};
    size_t lengths[4] = {0};
    struct err err;

    str_addf(&text, "[%0*d %0*d]\n%0*d = %0*d\n", 1000, 1, 2000, 1, 3000, 1, 4000, 1);
    ck_assert_msg(ini_read_text("f", text.p, measure, lengths, &err) == 0, "%s", err.text);
    ck_assert_uint_eq(lengths[0], 1000);
    ck_assert_uint_eq(lengths[1], 2000);
    ck_assert_uint_eq(lengths[2], 3000);
    ck_assert_uint_eq(lengths[3], 4000);
    str_clear(&text);
}
END_TEST

START_TEST(the_longest_line_is_read_and_one_byte_more_is_refused)
{
    struct str text = {0};
    size_t lengths[4] = {0};
    struct err err;

    str_addf(&text, "k=%0*d", 8190, 1);
    ck_assert_int_eq(ini_read_text("f", text.p, measure, lengths, &err), 0);
    ck_assert_uint_eq(lengths[3], 8190);
    str_addc(&text, '0');
    ck_assert_int_eq(ini_read_text("f", text.p, measure, lengths, &err), -ERR_INVALID);
    ck_assert_str_eq(err.text, "f:1: the line is too long; split it");
    str_clear(&text);
}
END_TEST

START_TEST(a_file_is_read_and_named)
{
    char *path = scratch_file("a.conf", "[s]\na = b\n", 10);
    struct str seen = {0};
    struct err err;

    ck_assert_int_eq(ini_read(path, collect, &seen, &err), 0);
    ck_assert_str_eq(str_text(&seen), "2 s/ a=b;");
    str_clear(&seen);
    free(path);
    path = scratch_file("b.conf", "a = b\nc\n", 8);
    ck_assert_int_eq(ini_read(path, collect, &seen, &err), -ERR_INVALID);
    ck_assert_uint_eq(strncmp(err.text, path, strlen(path)), 0);
    ck_assert_uint_eq(strncmp(err.text + strlen(path), ":2: ", 4), 0);
    str_clear(&seen);
    free(path);
}
END_TEST

START_TEST(a_file_that_is_absent_or_no_text_is_refused)
{
    char *path = scratch_file("a.conf", "a = b\0c\n", 8);
    struct str seen = {0};
    struct err err;

    ck_assert_int_eq(ini_read("/nowhere/rnbd.conf", collect, &seen, &err), -ERR_NOT_FOUND);
    ck_assert_int_eq(ini_read(path, collect, &seen, &err), -ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.text, "zero byte"));
    ck_assert_uint_eq(seen.len, 0);
    str_clear(&seen);
    free(path);
}
END_TEST

TCase *tcase_common_ini(void);
TCase *tcase_common_ini(void)
{
    TCase *tc = tcase_create("ini");

    tcase_add_loop_test(tc, entries_come_with_section_and_line, 0, N(good));
    tcase_add_loop_test(tc, what_is_no_entry_is_refused_with_file_and_line, 0, N(bad));
    tcase_add_test(tc, the_handlers_error_comes_back_with_its_place_and_ends_it);
    tcase_add_test(tc, a_fault_of_form_ends_it_too);
    tcase_add_test(tc, long_names_and_values_are_whole);
    tcase_add_test(tc, the_longest_line_is_read_and_one_byte_more_is_refused);
    tcase_add_test(tc, a_file_is_read_and_named);
    tcase_add_test(tc, a_file_that_is_absent_or_no_text_is_refused);
    return tc;
}
