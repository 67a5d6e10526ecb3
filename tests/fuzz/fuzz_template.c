/* Chat templates: any text is refused or renders within its limits. */
/* room: daemon/template */
#include <string.h>

#include "common/json.h"
#include "common/utf8.h"
#include "daemon/template/template.h"
#include "tests/fuzz/fuzz.h"

static const char context_json[] =
    "{\"messages\": [{\"role\": \"user\", \"content\": \"M1 \\u00e9\"},"
    " {\"role\": \"assistant\", \"content\": null, \"tool_calls\": [{\"id\": \"M2\", \"function\":"
    " {\"name\": \"M3\", \"arguments\": {\"M4\": [1, 2.5, true]}}}]}],"
    " \"tools\": null, \"n\": 3, \"s\": \"M5 <|x|>\", \"l\": [3, 1, 2], \"d\": {\"b\": 1, \"a\": "
    "{}}}";

static void check_spans(const struct template_output *out)
{
    size_t last = 0;

    for (size_t i = 0; i < out->n_spans; i++) {
        const struct template_span *s = &out->spans[i];

        FUZZ_REQUIRE(s->from < s->to && s->to <= out->text.len);
        FUZZ_REQUIRE(i == 0 || s->from > last);
        last = s->to;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static json_t *context;
    static struct template_var vars[8];
    static size_t n_vars;
    const struct template_limits limits = {
        .depth = 200, .steps = 50000, .output_bytes = 1 << 16, .memory_bytes = 8 << 20};
    struct template_context c = {.now = {.tm_mday = 1, .tm_year = 100}};
    struct template_output out = {0};
    struct template *t = NULL;
    struct err err = {.kind = ERR_NONE};
    const char *key;
    json_t *value;

    if (!context) {
        FUZZ_REQUIRE(json_parse(context_json, sizeof context_json - 1, &context, &err) == 0);
        json_object_foreach(context, key, value) vars[n_vars++] =
            (struct template_var){key, value, TEMPLATE_ORIGIN_MESSAGE};
    }
    c.vars = vars;
    c.n_vars = n_vars;
    if (template_parse((const char *)data, size, &t, &err) < 0) {
        FUZZ_REQUIRE(err.kind == ERR_FORMAT || err.kind == ERR_TOO_LARGE);
        FUZZ_REQUIRE(utf8_valid(err.text, strlen(err.text)));
        return 0;
    }
    if (template_render(t, &c, &limits, &out, &err) < 0) {
        FUZZ_REQUIRE(err.kind == ERR_INVALID || err.kind == ERR_UNPROCESSABLE ||
                     err.kind == ERR_TOO_LARGE);
        FUZZ_REQUIRE(utf8_valid(err.text, strlen(err.text)));
    } else {
        FUZZ_REQUIRE(out.text.len <= limits.output_bytes);
        check_spans(&out);
    }
    template_output_clear(&out);
    template_destroy(t);
    return 0;
}
