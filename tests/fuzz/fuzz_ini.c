/* A configuration file of any content, and its values read as sizes, shares and times. */
/* room: common */
#include <string.h>

#include "common/alloc.h"
#include "common/ini.h"
#include "common/units.h"
#include "common/utf8.h"
#include "tests/fuzz/fuzz.h"

static void read_value(const char *text)
{
    uint64_t bytes = 7;
    int64_t ms = -7;

    if (units_parse_size(text, &bytes, NULL) < 0)
        FUZZ_REQUIRE(bytes == 7);
    bytes = 7;
    if (units_parse_share(text, 1000000, &bytes, NULL) < 0)
        FUZZ_REQUIRE(bytes == 7);
    else if (strchr(text, '%'))
        FUZZ_REQUIRE(bytes <= 1000000);
    FUZZ_REQUIRE(units_parse_time_ms(text, &ms, NULL) < 0 ? ms == -7 : ms >= 0);
}

static int on_entry(void *arg, const struct ini_entry *e, struct err *err)
{
    int *last = arg;

    FUZZ_REQUIRE(e->line > *last);
    FUZZ_REQUIRE(e->key[0] && e->key[0] != '#' && e->key[0] != '[');
    FUZZ_REQUIRE(!strpbrk(e->key, "=:\n") && !strpbrk(e->value, "\n\r"));
    FUZZ_REQUIRE(!e->name[0] || e->section[0]);
    FUZZ_REQUIRE(!strpbrk(e->section, " \t]\n") && !strpbrk(e->name, "]\n"));
    *last = e->line;
    read_value(e->value);
    if (strcmp(e->key, "refuse") == 0)
        return err_set_param(err, ERR_UNSUPPORTED, e->key, "no '%s'", e->value);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = xstrndup((const char *)data, size);
    struct err err = {.kind = ERR_NONE};
    int last = 0;
    int r;

    r = ini_read_text("f", text, on_entry, &last, &err);
    FUZZ_REQUIRE(r == -(int)err.kind);
    FUZZ_REQUIRE(r == 0 || strncmp(err.text, "f:", 2) == 0);
    FUZZ_REQUIRE(utf8_valid(err.text, strlen(err.text)));
    free(text);
    return 0;
}
