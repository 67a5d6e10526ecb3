/* JSON from a client: parsing, getters, writing. */
/* room: common */
#include <string.h>

#include "common/json.h"
#include "common/utf8.h"
#include "tests/fuzz/fuzz.h"

static void read_fields(const json_t *value)
{
    static const char *const keys[] = {"a", "model", "temperature", "stream", NULL};
    struct err err = {.kind = ERR_NONE};

    for (size_t i = 0; keys[i]; i++) {
        int64_t n = -3;
        double d = -3;
        const char *s = NULL;
        bool b;

        if (json_get_int(value, keys[i], -2, 1000, &n, &err) != 1)
            FUZZ_REQUIRE(n == -3);
        else
            FUZZ_REQUIRE(n >= -2 && n <= 1000);
        if (json_get_double(value, keys[i], -2, 1000, &d, &err) != 1)
            FUZZ_REQUIRE(d == -3);
        else
            FUZZ_REQUIRE(d >= -2 && d <= 1000);
        FUZZ_REQUIRE((json_get_string(value, keys[i], &s, &err) == 1) == (s != NULL));
        json_get_bool(value, keys[i], &b, &err);
    }
    json_only_keys(value, keys, &err);
    FUZZ_REQUIRE(utf8_valid(err.text, strlen(err.text)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *value = NULL, *again = NULL;
    struct str out = {0};
    struct err err;
    int r;

    if (json_parse((const char *)data, size, &value, &err) < 0) {
        FUZZ_REQUIRE(err.kind == ERR_PARSE && utf8_valid(err.text, strlen(err.text)));
    } else {
        json_dump_to(value, &out);
        FUZZ_REQUIRE(utf8_valid(out.p, out.len) && !strpbrk(out.p, "\n\r"));
        r = json_parse(out.p, out.len, &again, &err);
        FUZZ_REQUIRE(r == 0 && json_equal(value, again));
        read_fields(value);
        json_decref(value);
        json_decref(again);
        str_clear(&out);
    }
    value = json_text((const char *)data, size);
    json_dump_to(value, &out);
    FUZZ_REQUIRE(utf8_valid(out.p, out.len));
    json_decref(value);
    str_clear(&out);
    return 0;
}
