/* Files of the state folder.  See kept.h. */

#include "daemon/memory/kept.h"

#include "common/clock.h"
#include "common/file.h"
#include "common/json.h"

void kept_save(const char *dir, const char *path, json_t *all)
{
    struct str text = {0};

    json_dump_to(all, &text);
    str_addc(&text, '\n');
    if (file_make_dirs(dir, 0750, NULL) >= 0)
        file_replace(path, text.p, text.len, 0640, NULL);
    str_clear(&text);
    json_decref(all);
}

json_t *kept_load(const char *path, size_t max)
{
    struct str text = {0};
    json_t *all = NULL;

    if (file_read_all(path, max, &text, NULL) >= 0)
        json_parse(str_text(&text), text.len, &all, NULL);
    str_clear(&text);
    return all;
}

bool kept_is_fresh(const json_t *all, int version, int64_t seconds)
{
    int64_t got = 0, at = 0, now = clock_wall_s();

    return json_get_int(all, "version", version, version, &got, NULL) == 1 &&
           json_get_int(all, "at", 0, INT64_MAX, &at, NULL) == 1 && at <= now &&
           now - at <= seconds;
}
