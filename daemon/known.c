/* Known models from settings and from a folder; see known.h. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/file.h"
#include "common/log.h"
#include "common/map.h"
#include "common/utf8.h"
#include "daemon/known.h"

/* "name.gguf" → its stem; parts of a split but the first are no models of their own (a new string, or NULL). */
static char *model_name_of(const char *file)
{
    size_t len = strlen(file);
    size_t stem = len > 5 ? len - 5 : 0;
    static const char of[] = "-of-";

    if (file[0] == '.' || stem == 0 || strcmp(file + stem, ".gguf") != 0)
        return NULL;
    /* NAME-00001-of-00006 */
    if (stem > 15 && strncmp(file + stem - 9, of, 4) == 0) {
        if (strncmp(file + stem - 15, "-00001", 6) != 0)
            return NULL;
        stem -= 15;
    }
    return xstrndup(file, stem);
}

/* Can requests ask for it, and terminals show it? */
static bool is_plain(const char *name)
{
    for (const char *p = name; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            return false;
    return utf8_valid(name, strlen(name));
}

/* Anybody's file may lie in the folder: one that cannot be a model is left out with a word, and ends nothing. */
static void know_file(const char *dir, const char *file, const char *name, struct engine *e,
                      struct map *names)
{
    struct engine_model_entry entry = {
        .name = xstrdup(name), .path = file_join(dir, file), .ttl_ms = -1};
    struct err err;

    if (!is_plain(name))
        log_warning("left out a model file:", "the name '%s' is not plain text", file);
    else if (engine_know(e, &entry, &err) < 0)
        log_warning("left out a model file:", "'%s': %s", file, err.text);
    else
        map_adds(names, name, names);
    free(entry.name);
    free(entry.path);
}

static int know_folder(const char *dir, struct engine *e, struct map *names, struct err *err)
{
    struct dirent **list = NULL;
    int n = scandir(dir, &list, NULL, alphasort);

    if (n < 0)
        return err_set_errno(err, ERR_IO, errno, "cannot read the models folder '%s' (models.dir)",
                             dir);
    for (int i = 0; i < n; i++) {
        char *name = model_name_of(list[i]->d_name);

        if (name && !map_gets(names, name))
            know_file(dir, list[i]->d_name, name, e, names);
        free(name);
        free(list[i]);
    }
    free(list);
    return 0;
}

int known_check(const struct settings *s, struct err *err)
{
    DIR *d = *s->models_dir ? opendir(s->models_dir) : NULL;

    if (*s->models_dir && !d)
        return err_set_errno(err, ERR_IO, errno, "cannot read the models folder '%s' (models.dir)",
                             s->models_dir);
    if (d)
        closedir(d);
    return 0;
}

static bool is_named(void *arg, const char *name)
{
    return map_gets(arg, name) != NULL;
}

int known_apply(const struct settings *s, struct engine *e, struct err *err)
{
    struct map *names = map_create();
    int r = 0;

    for (size_t i = 0; i < s->n_models && r >= 0; i++) {
        r = engine_know(e, &s->models[i], err);
        map_adds(names, s->models[i].name, names);
    }
    if (r >= 0 && *s->models_dir)
        r = know_folder(s->models_dir, e, names, err);
    if (r >= 0)
        engine_forget(e, is_named, names);
    map_destroy(names, NULL);
    return r < 0 ? r : 0;
}
