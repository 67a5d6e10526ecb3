/* JSON-RPC 2.0: framing, reading and writing messages. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/rpc.h"
#include "common/utf8.h"

#define N(a) (int)(sizeof(a) / sizeof((a)[0]))

START_TEST(lines_come_out_one_by_one)
{
    struct str buf = {0}, line = {0};
    struct err err;

    str_adds(&buf, "{\"a\":1}\n[2]\r\n\n\r\n  3\npart");
    ck_assert_int_eq(rpc_take_line(&buf, &line, &err), 1);
    ck_assert_str_eq(line.p, "{\"a\":1}");
    ck_assert_int_eq(rpc_take_line(&buf, &line, &err), 1);
    ck_assert_str_eq(line.p, "[2]");
    ck_assert_int_eq(rpc_take_line(&buf, &line, &err), 1);
    ck_assert_str_eq(line.p, "  3");
    ck_assert_int_eq(rpc_take_line(&buf, &line, &err), 0);
    ck_assert_str_eq(buf.p, "part");
    str_adds(&buf, "ial\n");
    ck_assert_int_eq(rpc_take_line(&buf, &line, &err), 1);
    ck_assert_str_eq(line.p, "partial");
    ck_assert_uint_eq(buf.len, 0);
    str_clear(&buf);
    str_clear(&line);
}
END_TEST

START_TEST(no_bytes_and_empty_lines_are_no_line)
{
    struct str buf = {0}, line = {0};

    ck_assert_int_eq(rpc_take_line(&buf, &line, NULL), 0);
    str_adds(&buf, "\n\r\n\n");
    ck_assert_int_eq(rpc_take_line(&buf, &line, NULL), 0);
    ck_assert_uint_eq(buf.len, 0);
    str_clear(&buf);
    str_clear(&line);
}
END_TEST

START_TEST(a_line_may_come_byte_by_byte)
{
    static const char text[] = "{\"x\":\"\xC3\xA9\"}\r\n";
    struct str buf = {0}, line = {0};

    for (size_t i = 0; i < sizeof text - 1; i++) {
        str_addc(&buf, text[i]);
        ck_assert_int_eq(rpc_take_line(&buf, &line, NULL), i == sizeof text - 2);
    }
    ck_assert_str_eq(line.p, "{\"x\":\"\xC3\xA9\"}");
    str_clear(&buf);
    str_clear(&line);
}
END_TEST

START_TEST(the_longest_line_passes_and_one_byte_more_is_refused)
{
    struct str buf = {0}, line = {0};
    char *long_line = malloc(RPC_LINE_MAX + 1);
    struct err err;

    memset(long_line, 'x', RPC_LINE_MAX + 1);
    str_add(&buf, long_line, RPC_LINE_MAX);
    ck_assert_int_eq(rpc_take_line(&buf, &line, &err), 0);
    str_addc(&buf, '\n');
    ck_assert_int_eq(rpc_take_line(&buf, &line, &err), 1);
    ck_assert_uint_eq(line.len, RPC_LINE_MAX);
    str_add(&buf, long_line, RPC_LINE_MAX + 1);
    ck_assert_int_eq(rpc_take_line(&buf, &line, &err), -ERR_TOO_LARGE);
    str_addc(&buf, '\n');
    ck_assert_int_eq(rpc_take_line(&buf, &line, &err), -ERR_TOO_LARGE);
    free(long_line);
    str_clear(&buf);
    str_clear(&line);
}
END_TEST

START_TEST(zero_bytes_do_not_hide_the_end_of_a_line)
{
    struct str buf = {0}, line = {0};

    str_add(&buf, "a\0b\n", 4);
    ck_assert_int_eq(rpc_take_line(&buf, &line, NULL), 1);
    ck_assert_uint_eq(line.len, 3);
    str_clear(&buf);
    str_clear(&line);
}
END_TEST

static struct rpc_message parsed(const char *text)
{
    struct rpc_message m = {.id = NULL};
    json_t *id = (json_t *)1;
    struct err err;

    ck_assert_msg(rpc_parse(text, strlen(text), &m, &id, &err) == 0, "%s", err.text);
    ck_assert_ptr_null(id);
    return m;
}

START_TEST(a_request_has_an_id_a_method_and_parameters)
{
    struct rpc_message m =
        parsed("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"model.load\",\"params\":{\"a\":1}}");

    ck_assert_int_eq(m.type, RPC_REQUEST);
    ck_assert_int_eq(json_integer_value(m.id), 7);
    ck_assert_str_eq(m.method, "model.load");
    ck_assert_int_eq(json_integer_value(json_object_get(m.params, "a")), 1);
    rpc_message_clear(&m);
    ck_assert_ptr_null(m.root);
    rpc_message_clear(&m);
}
END_TEST

START_TEST(an_id_may_be_a_string_and_parameters_may_be_absent)
{
    struct rpc_message m = parsed("{\"method\":\"m\",\"id\":\"x\",\"jsonrpc\":\"2.0\"}");

    ck_assert_int_eq(m.type, RPC_REQUEST);
    ck_assert_str_eq(json_string_value(m.id), "x");
    ck_assert_ptr_null(m.params);
    rpc_message_clear(&m);
}
END_TEST

START_TEST(a_call_without_an_id_is_a_notification)
{
    struct rpc_message m = parsed("{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{}}");

    ck_assert_int_eq(m.type, RPC_NOTIFICATION);
    ck_assert_ptr_null(m.id);
    rpc_message_clear(&m);
}
END_TEST

START_TEST(a_result_may_be_anything)
{
    struct rpc_message m = parsed("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}");

    ck_assert_int_eq(m.type, RPC_RESULT);
    ck_assert(json_is_null(m.result));
    ck_assert_ptr_null(m.method);
    rpc_message_clear(&m);
}
END_TEST

START_TEST(an_error_has_its_kind_by_code)
{
    struct rpc_message m = parsed(
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32004,\"message\":\"no such\"}}");

    ck_assert_int_eq(m.type, RPC_ERROR);
    ck_assert_ptr_null(m.id);
    ck_assert_int_eq(m.error.kind, ERR_NOT_FOUND);
    ck_assert_str_eq(m.error.text, "no such");
    rpc_message_clear(&m);
    m = parsed("{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-5,\"message\":\"odd\"}}");
    ck_assert_int_eq(m.error.kind, ERR_INTERNAL);
    rpc_message_clear(&m);
}
END_TEST

static const struct {
    const char *text;
    int kind;
    bool has_id;
} bad[] = {
    {"", ERR_PARSE, false},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"", ERR_PARSE, false},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"m\"}", ERR_PARSE, false},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xFF\"}", ERR_PARSE, false},
    {"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}]", ERR_ENVELOPE, false},
    {"[]", ERR_ENVELOPE, false},
    {"3", ERR_ENVELOPE, false},
    {"null", ERR_ENVELOPE, false},
    {"{}", ERR_ENVELOPE, false},
    {"{\"id\":1,\"method\":\"m\"}", ERR_ENVELOPE, true},
    {"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"m\"}", ERR_ENVELOPE, true},
    {"{\"jsonrpc\":2.0,\"id\":\"a\",\"method\":\"m\"}", ERR_ENVELOPE, true},
    {"{\"jsonrpc\":\"2.0\",\"id\":1}", ERR_ENVELOPE, true},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":1}", ERR_ENVELOPE, true},
    {"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"m\"}", ERR_ENVELOPE, false},
    {"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"m\"}", ERR_ENVELOPE, false},
    {"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"m\"}", ERR_ENVELOPE, false},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":[]}", ERR_ENVELOPE, true},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":null}", ERR_ENVELOPE, true},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1,\"error\":{}}", ERR_ENVELOPE, true},
    {"{\"jsonrpc\":\"2.0\",\"result\":1}", ERR_ENVELOPE, false},
    {"{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":1}", ERR_ENVELOPE, false},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":1}", ERR_ENVELOPE, true},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":\"x\",\"message\":\"y\"}}", ERR_ENVELOPE,
     true},
    {"{\"jsonrpc\":\"2.0\",\"error\":{\"code\":1,\"message\":\"y\"}}", ERR_ENVELOPE, false},
};

START_TEST(what_is_no_message_is_refused_with_the_id_if_there_is_one)
{
    struct rpc_message m = {.method = "untouched"};
    json_t *id = (json_t *)1;
    struct err err;

    ck_assert_int_eq(rpc_parse(bad[_i].text, strlen(bad[_i].text), &m, &id, &err), -bad[_i].kind);
    ck_assert_int_eq(id != NULL, bad[_i].has_id);
    ck_assert_str_eq(m.method, "untouched");
    ck_assert_uint_gt(strlen(err.text), 0);
    json_decref(id);
}
END_TEST

START_TEST(a_batch_is_refused_by_name)
{
    struct rpc_message m;
    json_t *id;
    struct err err;

    ck_assert_int_eq(rpc_parse("[]", 2, &m, &id, &err), -ERR_ENVELOPE);
    ck_assert_ptr_nonnull(strstr(err.text, "batches are not supported"));
}
END_TEST

START_TEST(what_is_written_is_one_line_and_reads_back)
{
    struct str out = {0}, line = {0};
    json_t *id = json_string("a\nb");
    struct rpc_message m;

    rpc_write_request(&out, id, "model.load", json_pack("{s:s}", "name", "x\ny"));
    rpc_write_request(&out, id, "server.status", NULL);
    rpc_write_notification(&out, "progress", json_pack("{s:f}", "done", 0.25));
    rpc_write_result(&out, id, NULL);

    ck_assert_int_eq(rpc_take_line(&out, &line, NULL), 1);
    m = parsed(line.p);
    ck_assert_int_eq(m.type, RPC_REQUEST);
    ck_assert_str_eq(json_string_value(m.id), "a\nb");
    ck_assert_str_eq(json_string_value(json_object_get(m.params, "name")), "x\ny");
    rpc_message_clear(&m);
    ck_assert_int_eq(rpc_take_line(&out, &line, NULL), 1);
    ck_assert_str_eq(line.p, "{\"jsonrpc\":\"2.0\",\"id\":\"a\\nb\",\"method\":\"server.status\"}");
    ck_assert_int_eq(rpc_take_line(&out, &line, NULL), 1);
    ck_assert_str_eq(line.p,
                     "{\"jsonrpc\":\"2.0\",\"method\":\"progress\",\"params\":{\"done\":0.25}}");
    ck_assert_int_eq(rpc_take_line(&out, &line, NULL), 1);
    ck_assert_str_eq(line.p, "{\"jsonrpc\":\"2.0\",\"id\":\"a\\nb\",\"result\":null}");
    ck_assert_uint_eq(out.len, 0);
    json_decref(id);
    str_clear(&out);
    str_clear(&line);
}
END_TEST

START_TEST(an_error_keeps_kind_sentence_field_and_data)
{
    struct str out = {0};
    json_t *id = json_integer(3);
    struct rpc_message m;
    struct err err;

    err_set_param(&err, ERR_NOMEM, "ctx", "no room for %d tokens\n", 5);
    strcpy(err.data, "{\"need\":10,\"free\":4}");
    rpc_write_error(&out, id, &err);
    ck_assert_ptr_nonnull(strstr(out.p, "\"code\":-32001"));
    m = parsed(out.p);
    ck_assert_int_eq(m.type, RPC_ERROR);
    ck_assert_int_eq(m.error.kind, ERR_NOMEM);
    ck_assert_str_eq(m.error.text, "no room for 5 tokens\n");
    ck_assert_str_eq(m.error.param, "ctx");
    ck_assert_str_eq(m.error.data, "{\"need\":10,\"free\":4}");
    rpc_message_clear(&m);
    json_decref(id);
    str_clear(&out);
}
END_TEST

START_TEST(every_kind_of_error_survives_the_way)
{
    for (int k = ERR_NONE + 1; k < ERR_N_KINDS; k++) {
        struct str out = {0};
        struct rpc_message m;
        struct err err;

        err_set(&err, (enum err_kind)k, "x");
        rpc_write_error(&out, NULL, &err);
        ck_assert_ptr_nonnull(strstr(out.p, "\"id\":null"));
        m = parsed(out.p);
        ck_assert_int_eq(m.error.kind, k);
        ck_assert_str_eq(m.error.data, "");
        ck_assert_str_eq(m.error.param, "");
        rpc_message_clear(&m);
        str_clear(&out);
    }
}
END_TEST

START_TEST(odd_bytes_in_an_error_do_not_break_the_line)
{
    struct str out = {0};
    struct rpc_message m;
    struct err err;

    err_set_param(&err, ERR_IO, "p\xFF", "file '%s' is odd", "\xFF\n\xE2\x82");
    strcpy(err.data, "not json");
    rpc_write_error(&out, NULL, &err);
    ck_assert_ptr_eq(strchr(out.p, '\n'), out.p + out.len - 1);
    ck_assert(utf8_valid(out.p, out.len));
    m = parsed(out.p);
    ck_assert_str_eq(m.error.param, "p\xEF\xBF\xBD");
    rpc_message_clear(&m);
    str_clear(&out);
}
END_TEST

START_TEST(an_answer_that_no_line_holds_becomes_an_error)
{
    char *text = malloc(RPC_LINE_MAX);
    struct str out = {0};
    json_t *id = json_integer(9);
    struct rpc_message m;

    memset(text, 'x', RPC_LINE_MAX);
    str_adds(&out, "before\n");
    rpc_write_result(&out, id, json_stringn(text, RPC_LINE_MAX));
    ck_assert_uint_lt(out.len, 1000);
    ck_assert_mem_eq(out.p, "before\n", 7);
    m = parsed(out.p + 7);
    ck_assert_int_eq(m.type, RPC_ERROR);
    ck_assert_int_eq(m.error.kind, ERR_TOO_LARGE);
    ck_assert_int_eq(json_integer_value(m.id), 9);
    rpc_message_clear(&m);
    str_truncate(&out, 0);
    rpc_write_result(&out, id, json_stringn(text, RPC_LINE_MAX - 100));
    m = parsed(out.p);
    ck_assert_int_eq(m.type, RPC_RESULT);
    rpc_message_clear(&m);
    free(text);
    json_decref(id);
    str_clear(&out);
}
END_TEST

TCase *tcase_common_rpc(void);
TCase *tcase_common_rpc(void)
{
    TCase *tc = tcase_create("rpc");

    tcase_add_test(tc, lines_come_out_one_by_one);
    tcase_add_test(tc, no_bytes_and_empty_lines_are_no_line);
    tcase_add_test(tc, a_line_may_come_byte_by_byte);
    tcase_add_test(tc, the_longest_line_passes_and_one_byte_more_is_refused);
    tcase_add_test(tc, zero_bytes_do_not_hide_the_end_of_a_line);
    tcase_add_test(tc, a_request_has_an_id_a_method_and_parameters);
    tcase_add_test(tc, an_id_may_be_a_string_and_parameters_may_be_absent);
    tcase_add_test(tc, a_call_without_an_id_is_a_notification);
    tcase_add_test(tc, a_result_may_be_anything);
    tcase_add_test(tc, an_error_has_its_kind_by_code);
    tcase_add_loop_test(tc, what_is_no_message_is_refused_with_the_id_if_there_is_one, 0, N(bad));
    tcase_add_test(tc, a_batch_is_refused_by_name);
    tcase_add_test(tc, what_is_written_is_one_line_and_reads_back);
    tcase_add_test(tc, an_error_keeps_kind_sentence_field_and_data);
    tcase_add_test(tc, every_kind_of_error_survives_the_way);
    tcase_add_test(tc, odd_bytes_in_an_error_do_not_break_the_line);
    tcase_add_test(tc, an_answer_that_no_line_holds_becomes_an_error);
    return tc;
}
