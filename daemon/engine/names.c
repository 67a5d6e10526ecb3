/* Known models by name and alias: the list that LOOP has; see engine_priv.h. */
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/thread.h"
#include "daemon/engine/engine_priv.h"

/* How many names a sentence lists. */
#define NAMES_SHOWN 8

struct slot *names_find(const struct engine *e, const char *name)
{
    for (size_t i = 0; i < e->n_slots; i++)
        if (slot_answers_to(e->slots[i], name))
            return e->slots[i];
    return NULL;
}

static int no_such_model(const struct engine *e, const char *name, struct err *err)
{
    struct str list = {0};
    int r;

    for (size_t i = 0; i < e->n_slots && i < NAMES_SHOWN; i++)
        str_addf(&list, "%s'%.60s'", i ? ", " : "", e->slots[i]->name);
    if (e->n_slots > NAMES_SHOWN)
        str_addf(&list, " and %zu more", e->n_slots - NAMES_SHOWN);
    if (!e->n_slots)
        r = err_set_param(err, ERR_NOT_FOUND, "model",
                          "there is no model '%.100s', and no model is known; load a file first",
                          name);
    else
        r = err_set_param(err, ERR_NOT_FOUND, "model",
                          "there is no model '%.100s'; the known ones are %s", name,
                          str_text(&list));
    str_clear(&list);
    return r;
}

static bool in_memory(struct engine *e, const struct slot *s)
{
    struct model_status st;

    slot_read(&e->catalog, s, &st);
    return st.state == MODEL_READY || st.state == MODEL_LOADING;
}

int names_resolve(const struct engine *e, const char *name, struct slot **ret, struct err *err)
{
    struct slot *only = NULL;
    size_t n = 0;

    if (name) {
        struct slot *s = names_find(e, name);

        if (!s)
            return no_such_model(e, name, err);
        *ret = s;
        return 0;
    }
    for (size_t i = 0; i < e->n_slots; i++) {
        /* The lock inside is no part of what const promises. */
        if (in_memory((struct engine *)(uintptr_t)e, e->slots[i])) {
            only = e->slots[i];
            n++;
        }
    }
    if (n != 1)
        only = e->n_slots ? e->slots[0] : NULL;
    if (!only)
        return no_such_model(e, "", err);
    *ret = only;
    return 0;
}

/* "x.gguf" and "x-00001-of-00003.gguf" of a path → "x". */
static char *name_of_path(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *name = xstrdup(slash ? slash + 1 : path);
    size_t len = strlen(name);

    if (len > 5 && strcmp(name + len - 5, ".gguf") == 0)
        name[len -= 5] = '\0';
    if (len > 15 && strncmp(name + len - 9, "-of-", 4) == 0 && name[len - 15] == '-')
        name[len - 15] = '\0';
    return name;
}

/* A known name, or the known model of that file when no other name is wanted for it. */
static struct slot *find_target(const struct engine *e, const char *target, const char *name)
{
    struct slot *s = names_find(e, target);

    for (size_t i = 0; i < e->n_slots && !s && !name; i++)
        if (strcmp(e->slots[i]->path, target) == 0)
            s = e->slots[i];
    return s;
}

int names_resolve_target(struct engine *e, const char *target, const char *name, struct slot **ret,
                         struct err *err)
{
    struct slot *s = find_target(e, target, name);
    struct engine_model_entry entry = {.ttl_ms = -1};
    int r = 0;

    if (s) {
        *ret = s;
        return 0;
    }
    if (!strchr(target, '/') && !strstr(target, ".gguf"))
        return no_such_model(e, target, err);
    entry.path = xstrdup(target);
    entry.name = name && *name ? xstrdup(name) : name_of_path(target);
    s = names_find(e, entry.name);
    if (s && strcmp(s->path, target) == 0)
        *ret = s;
    else if (s)
        r = err_set_param(err, ERR_CONFLICT, "name",
                          "the name '%.100s' belongs to '%.200s'; choose another", entry.name,
                          s->path);
    else
        r = engine_know(e, &entry, err);
    if (r >= 0 && !s) {
        s = names_find(e, entry.name);
        s->transient = true;
        *ret = s;
    }
    free(entry.name);
    free(entry.path);
    return r < 0 ? r : 0;
}

void names_drop(struct engine *e, struct slot *s)
{
    for (size_t i = 0; i < e->n_slots; i++) {
        if (e->slots[i] != s)
            continue;
        e->n_slots--;
        memmove(e->slots + i, e->slots + i + 1, (e->n_slots - i) * sizeof(struct slot *));
        notes_slot_retired(e, s);
        return;
    }
}

const struct format *names_kv_format(const char *name, struct err *err)
{
    static const enum format_id possible[] = {FORMAT_f16, FORMAT_q8_0, FORMAT_q4_0, FORMAT_f32};

    for (size_t i = 0; i < ARRAY_LEN(possible); i++)
        if (strcmp(format_of(possible[i])->name, name) == 0)
            return format_of(possible[i]);
    err_set_param(err, ERR_INVALID, "kv",
                  "there is no KV cache format '%.40s'; use f16, q8_0 or q4_0", name);
    return NULL;
}

static int terms_of(const struct engine *e, const struct engine_model_entry *entry,
                    struct slot_terms *ret, struct err *err)
{
    const struct format *kv = NULL;

    if (entry->kv && *entry->kv) {
        kv = names_kv_format(entry->kv, err);
        if (!kv)
            return -ERR_INVALID;
    }
    *ret = (struct slot_terms){.n_ctx = entry->n_ctx,
                               .kv = kv,
                               .ttl_ms = entry->ttl_ms < 0 ? e->opt.ttl_ms : entry->ttl_ms,
                               .pin = entry->pin};
    return 0;
}

static int check_entry(const struct engine *e, const struct engine_model_entry *entry,
                       const struct slot *same, struct err *err)
{
    const struct slot *other = NULL;
    const char *name = entry->name;

    if (!*name || strlen(name) >= sizeof(((struct model_status *)0)->name))
        return err_set_param(err, ERR_INVALID, "name",
                             "a model's name has 1 to %zu bytes; '%.40s' has %zu",
                             sizeof(((struct model_status *)0)->name) - 1, name, strlen(name));
    for (size_t i = 0; i < entry->n_aliases && !other; i++) {
        name = entry->aliases[i];
        other = names_find(e, name);
        if (other == same)
            other = NULL;
    }
    if (other)
        return err_set_param(err, ERR_CONFLICT, "alias",
                             "the name '%.100s' of model '%.100s' belongs to model '%.100s' too",
                             name, entry->name, other->name);
    return 0;
}

static bool same_file_and_names(const struct slot *s, const struct engine_model_entry *entry)
{
    if (strcmp(s->name, entry->name) != 0 || strcmp(s->path, entry->path) != 0 ||
        s->n_aliases != entry->n_aliases)
        return false;
    for (size_t i = 0; i < s->n_aliases; i++)
        if (strcmp(s->aliases[i], entry->aliases[i]) != 0)
            return false;
    return true;
}

int engine_know(struct engine *e, const struct engine_model_entry *entry, struct err *err)
{
    struct slot *old, *s;
    struct slot_terms terms;
    size_t at;
    int r;

    thread_assert(THREAD_LOOP);
    old = names_find(e, entry->name);
    if (old && strcmp(old->name, entry->name) != 0)
        return err_set_param(err, ERR_CONFLICT, "name",
                             "the name '%.100s' is an alias of model '%.100s'", entry->name,
                             old->name);
    r = check_entry(e, entry, old, err);
    if (r >= 0)
        r = terms_of(e, entry, &terms, err);
    if (r < 0)
        return r;
    if (old && same_file_and_names(old, entry)) {
        old->transient = false;
        old->asked = terms;
        notes_slot_terms(e, old, &terms);
        return 0;
    }
    s = slot_create(entry, &terms);
    ARRAY_GROW(e->slots, e->n_slots + 1, e->cap_slots);
    for (at = 0; at < e->n_slots && e->slots[at] != old; at++)
        ;
    if (old) {
        e->slots[at] = s;
        notes_slot_retired(e, old);
    } else {
        e->slots[e->n_slots++] = s;
    }
    notes_slot_known(e, s);
    reader_look_at_file(e, s);
    return 0;
}

void engine_forget(struct engine *e, bool (*keep)(void *arg, const char *name), void *arg)
{
    thread_assert(THREAD_LOOP);
    for (size_t i = 0; i < e->n_slots;) {
        struct slot *s = e->slots[i];

        /* What was loaded by hand is not the configuration's to forget. */
        if (s->transient || keep(arg, s->name))
            i++;
        else
            names_drop(e, s);
    }
}

size_t engine_models(const struct engine *e, struct model_status *ret_list, size_t cap)
{
    struct engine *locked =
        (struct engine *)(uintptr_t)e; /* the lock is no part of what const promises */

    thread_assert(THREAD_LOOP);
    for (size_t i = 0; i < e->n_slots && i < cap; i++)
        slot_read(&locked->catalog, e->slots[i], &ret_list[i]);
    return e->n_slots;
}

int engine_model(const struct engine *e, const char *name, struct model_status *ret,
                 struct err *err)
{
    struct engine *locked = (struct engine *)(uintptr_t)e;
    struct slot *s;
    int r;

    thread_assert(THREAD_LOOP);
    r = names_resolve(e, name, &s, err);
    if (r < 0)
        return r;
    slot_read(&locked->catalog, s, ret);
    return 0;
}
