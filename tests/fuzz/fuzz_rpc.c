/* A peer on the control socket that sends anything: framing and envelope. */
/* room: common */
#include <string.h>

#include "common/rpc.h"
#include "common/utf8.h"
#include "tests/fuzz/fuzz.h"

/* What was understood can be said again, and is then understood in the same way. */
static void say_again(const struct rpc_message *m)
{
    struct rpc_message again = {.id = NULL};
    struct str line = {0};
    json_t *id;
    int r;

    switch (m->type) {
    case RPC_REQUEST: rpc_write_request(&line, m->id, m->method, json_incref(m->params)); break;
    case RPC_NOTIFICATION: rpc_write_notification(&line, m->method, json_incref(m->params)); break;
    case RPC_RESULT: rpc_write_result(&line, m->id, json_incref(m->result)); break;
    case RPC_ERROR: rpc_write_error(&line, m->id, &m->error); break;
    }
    FUZZ_REQUIRE(line.len > 0 && strchr(line.p, '\n') == line.p + line.len - 1);
    FUZZ_REQUIRE(utf8_valid(line.p, line.len));
    r = rpc_parse(line.p, line.len, &again, &id, NULL);
    FUZZ_REQUIRE(r == 0);
    FUZZ_REQUIRE(again.type == m->type);
    FUZZ_REQUIRE(m->type == RPC_ERROR || (!again.id ? !m->id : json_equal(again.id, m->id)));
    FUZZ_REQUIRE(!again.method ? !m->method : strcmp(again.method, m->method) == 0);
    FUZZ_REQUIRE(!again.params ? !m->params : json_equal(again.params, m->params));
    FUZZ_REQUIRE(!again.result ? !m->result : json_equal(again.result, m->result));
    FUZZ_REQUIRE(again.error.kind == m->error.kind);
    rpc_message_clear(&again);
    str_clear(&line);
}

static void read_line(const struct str *line)
{
    struct rpc_message m = {.id = NULL};
    struct str answer = {0};
    json_t *id = NULL;
    struct err err;
    int r;

    FUZZ_REQUIRE(!memchr(str_text(line), '\n', line->len));
    r = rpc_parse(str_text(line), line->len, &m, &id, &err);
    if (r == 0) {
        FUZZ_REQUIRE(!id);
        say_again(&m);
        rpc_message_clear(&m);
        return;
    }
    FUZZ_REQUIRE(r == -(int)err.kind && err.text[0]);
    rpc_write_error(&answer, id, &err);
    FUZZ_REQUIRE(utf8_valid(answer.p, answer.len));
    json_decref(id);
    str_clear(&answer);
}

/* The first byte says in pieces of which size the rest arrives. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str buf = {0}, line = {0};
    size_t piece = size ? data[0] % 61u + 1 : 1;

    for (size_t at = 1; at < size; at += piece) {
        str_add(&buf, data + at, size - at < piece ? size - at : piece);
        while (rpc_take_line(&buf, &line, NULL) == 1)
            read_line(&line);
    }
    str_clear(&buf);
    str_clear(&line);
    return 0;
}
