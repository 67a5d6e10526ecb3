/* The error idiom: sentences, kinds and their columns. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "common/err.h"
#include "common/utf8.h"

START_TEST(an_error_returns_its_negative_kind_and_keeps_the_sentence)
{
    struct err err;

    ck_assert_int_eq(err_set(&err, ERR_BUSY, "the queue of %d is full", 4), -ERR_BUSY);
    ck_assert_int_eq(err.kind, ERR_BUSY);
    ck_assert_str_eq(err.text, "the queue of 4 is full");
    ck_assert_str_eq(err.param, "");
    ck_assert_str_eq(err.data, "");
}
END_TEST

START_TEST(a_later_error_forgets_the_parameter_of_an_earlier_one)
{
    struct err err;

    ck_assert_int_eq(err_set_param(&err, ERR_INVALID, "top_p", "no"), -ERR_INVALID);
    ck_assert_str_eq(err.param, "top_p");
    strcpy(err.data, "{}");
    err_set(&err, ERR_IO, "other");
    ck_assert_str_eq(err.param, "");
    ck_assert_str_eq(err.data, "");
}
END_TEST

START_TEST(nobody_has_to_read_the_error)
{
    ck_assert_int_eq(err_set(NULL, ERR_IO, "x"), -ERR_IO);
    ck_assert_int_eq(err_set_param(NULL, ERR_IO, "p", "x"), -ERR_IO);
    ck_assert_int_eq(err_set_errno(NULL, ERR_IO, EIO, "x"), -ERR_IO);
}
END_TEST

START_TEST(the_text_of_errno_follows_the_sentence)
{
    struct err err;

    err_set_errno(&err, ERR_IO, ENOENT, "cannot open '%s'", "a");
    ck_assert_str_eq(err.text, "cannot open 'a': No such file or directory");
}
END_TEST

START_TEST(a_long_sentence_is_cut_at_a_code_point)
{
    char text[1001];
    struct err err;

    for (int i = 0; i < 999; i += 3)
        memcpy(text + i, "\xE2\x82\xAC", 4);
    for (int shift = 0; shift < 3; shift++) {
        err_set_param(&err, ERR_INVALID, text, "%.*s%s", shift, "ab", text);
        ck_assert(utf8_valid(err.text, strlen(err.text)));
        ck_assert(utf8_valid(err.param, strlen(err.param)));
        ck_assert_uint_gt(strlen(err.text), sizeof err.text - 4);
        err_set_errno(&err, ERR_INVALID, EIO, "%.*s%s", shift, "ab", text);
        ck_assert(utf8_valid(err.text, strlen(err.text)));
    }
}
END_TEST

START_TEST(every_kind_has_a_name_a_status_and_a_code_of_its_own)
{
    for (int k = ERR_NONE + 1; k < ERR_N_KINDS; k++) {
        ck_assert_uint_gt(strlen(err_name(k)), 0);
        ck_assert_int_ge(err_http_status(k), 400);
        ck_assert_int_lt(err_http_status(k), 600);
        ck_assert_int_lt(err_rpc_code(k), 0);
        ck_assert_str_eq(err_name(k), err_name(-k));
        for (int j = k + 1; j < ERR_N_KINDS; j++)
            ck_assert_int_ne(err_rpc_code(k), err_rpc_code(j));
    }
}
END_TEST

START_TEST(a_kind_that_does_not_exist_is_a_fault_of_ours)
{
    ck_assert_str_eq(err_name(ERR_N_KINDS), "INTERNAL");
    ck_assert_str_eq(err_name(-1000), "INTERNAL");
    ck_assert_int_eq(err_http_status(99999), 500);
}
END_TEST

START_TEST(json_rpc_fixes_the_codes_of_a_broken_message)
{
    ck_assert_int_eq(err_rpc_code(ERR_PARSE), -32700);
    ck_assert_int_eq(err_rpc_code(ERR_ENVELOPE), -32600);
    ck_assert_int_eq(err_rpc_code(ERR_METHOD), -32601);
    ck_assert_int_eq(err_rpc_code(ERR_INVALID), -32602);
    ck_assert_int_eq(err_rpc_code(ERR_INTERNAL), -32603);
}
END_TEST

TCase *tcase_common_err(void);
TCase *tcase_common_err(void)
{
    TCase *tc = tcase_create("err");

    tcase_add_test(tc, an_error_returns_its_negative_kind_and_keeps_the_sentence);
    tcase_add_test(tc, a_later_error_forgets_the_parameter_of_an_earlier_one);
    tcase_add_test(tc, nobody_has_to_read_the_error);
    tcase_add_test(tc, the_text_of_errno_follows_the_sentence);
    tcase_add_test(tc, a_long_sentence_is_cut_at_a_code_point);
    tcase_add_test(tc, every_kind_has_a_name_a_status_and_a_code_of_its_own);
    tcase_add_test(tc, a_kind_that_does_not_exist_is_a_fault_of_ours);
    tcase_add_test(tc, json_rpc_fixes_the_codes_of_a_broken_message);
    return tc;
}
