/* What was measured of the kernels, kept for this machine.  See gauge.h. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/json.h"
#include "daemon/memory/gauge_priv.h"
#include "daemon/memory/kept.h"

#define STATE_VERSION 4
#define STATE_MAX     ((size_t)64 << 10)

static void name_machine(struct gauge *g, const struct backend_ops *ops, struct backend *be)
{
    struct str text = {0};
    struct device d = {0};
    const char *model = NULL;
    size_t n = 0;

    ops->describe(be, &d);
    if (file_read_all("/proc/cpuinfo", (size_t)4 << 20, &text, NULL) >= 0)
        model = strstr(str_text(&text), "model name");
    model = model ? strchr(model, ':') : NULL;
    model = model ? model + 1 + strspn(model + 1, " \t") : "a processor without a name";
    n = MIN(strcspn(model, "\n"), (size_t)80);
    snprintf(g->machine, sizeof g->machine, "%.*s, %s", (int)n, model, d.detail);
    str_clear(&text);
}

static char *state_path(const char *dir)
{
    return xasprintf("%s/kernels.json", dir);
}

/* One format's figures; what is missing or odd is not known. */
static bool take_list(const json_t *list, size_t n, double *ret)
{
    if (json_array_size(list) != n)
        return false;
    for (size_t i = 0; i < n; i++) {
        ret[i] = json_number_value(json_array_get(list, i));
        if (!(ret[i] >= 0 && ret[i] < 1))
            return false;
    }
    return true;
}

static json_t *list_of(const double *values, size_t n)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_real(values[i]));
    return list;
}

static bool take_format(const json_t *o, const char *key, enum format_id *ret)
{
    const char *name = NULL;

    for (int id = 0; json_get_string(o, key, &name, NULL) == 1 && id < FORMAT_COUNT; id++)
        if (strcmp(format_of(id)->name, name) == 0) {
            *ret = (enum format_id)id;
            return true;
        }
    return false;
}

/* A mixture of no sense is not taken: nothing would ever ask for it. */
static void take_mixture(struct gauge *g, const json_t *o)
{
    struct gauge_experts e = {0};
    struct gauge_mixture *m = &e.mixture;
    int64_t width, ff, n_experts, n_used, act;
    bool alone = false;
    const json_t *rows = json_object_get(o, "rows");

    if (!take_format(o, "gate", &m->formats[0]) || !take_format(o, "up", &m->formats[1]) ||
        !take_format(o, "down", &m->formats[2]) ||
        json_get_int(o, "width", 1, INT32_MAX, &width, NULL) != 1 ||
        json_get_int(o, "ff", 1, INT32_MAX, &ff, NULL) != 1 ||
        json_get_int(o, "experts", 1, OP_MAX_EXPERTS, &n_experts, NULL) != 1 ||
        json_get_int(o, "used", 1, n_experts, &n_used, NULL) != 1 ||
        json_get_int(o, "act", 0, OP_ACT_NONE, &act, NULL) != 1 ||
        json_get_bool(o, "alone", &alone, NULL) != 1 ||
        !take_list(json_object_get(o, "seconds"), GAUGE_POINTS, e.seconds) ||
        json_array_size(rows) != GAUGE_POINTS)
        return;
    for (size_t p = 0; p < GAUGE_POINTS; p++) {
        e.rows[p] = json_number_value(json_array_get(rows, p));
        if (!(e.rows[p] >= (p ? e.rows[p - 1] : 1) && e.rows[p] <= (double)INT32_MAX))
            return;
    }
    m->width = (size_t)width;
    m->ff = (size_t)ff;
    m->n_experts = (unsigned)n_experts;
    m->n_used = (unsigned)n_used;
    m->act = (enum op_act)act;
    m->alone = alone;
    gauge_add(g, &e);
}

static json_t *mixture_json(const struct gauge_experts *e)
{
    const struct gauge_mixture *m = &e->mixture;

    return json_pack("{s:s, s:s, s:s, s:I, s:I, s:i, s:i, s:i, s:b, s:o, s:o}", "gate",
                     format_of(m->formats[0])->name, "up", format_of(m->formats[1])->name, "down",
                     format_of(m->formats[2])->name, "width", (json_int_t)m->width, "ff",
                     (json_int_t)m->ff, "experts", (int)m->n_experts, "used", (int)m->n_used, "act",
                     (int)m->act, "alone", (int)m->alone, "rows", list_of(e->rows, GAUGE_POINTS),
                     "seconds", list_of(e->seconds, GAUGE_POINTS));
}

static void take(struct gauge *g, const json_t *all)
{
    const char *machine = "";
    const json_t *formats = json_object_get(all, "seconds");
    const json_t *caches = json_object_get(all, "attention");
    const json_t *mixtures = json_object_get(all, "mixtures");
    double op_s = 0, row_byte_s = 0;

    if (!kept_is_fresh(all, STATE_VERSION, GAUGE_KEPT_S) ||
        json_get_string(all, "machine", &machine, NULL) != 1 || strcmp(machine, g->machine) != 0)
        return;
    if (json_get_double(all, "op_s", 1e-9, 1, &op_s, NULL) != 1 ||
        json_get_double(all, "row_byte_s", 0, 1, &row_byte_s, NULL) != 1)
        return;
    g->op_s = op_s;
    g->row_byte_s = row_byte_s;
    for (int id = 0; id < FORMAT_COUNT; id++) {
        const char *name = format_of(id)->name;

        g->known[id] = take_list(json_object_get(formats, name), GAUGE_POINTS, g->seconds[id]);
        g->attends[id] = take_list(json_object_get(caches, name), 2, g->attention[id]);
    }
    for (size_t i = 0; i < MIN(json_array_size(mixtures), (size_t)GAUGE_MIXTURES); i++)
        take_mixture(g, json_array_get(mixtures, i));
}

void gauge_open(struct gauge *g, const char *dir, const struct backend_ops *ops, struct backend *be)
{
    json_t *all;
    char *path;

    *g = (struct gauge){0};
    name_machine(g, ops, be);
    if (!dir || !*dir)
        return;
    path = state_path(dir);
    all = kept_load(path, STATE_MAX);
    if (all)
        take(g, all);
    json_decref(all);
    free(path);
}

void gauge_save(const struct gauge *g, const char *dir)
{
    json_t *formats = json_object(), *caches = json_object(), *mixtures = json_array(), *all;
    char *path = state_path(dir);

    for (int id = 0; id < FORMAT_COUNT; id++) {
        const char *name = format_of(id)->name;

        if (g->known[id])
            json_object_set_new(formats, name, list_of(g->seconds[id], GAUGE_POINTS));
        if (g->attends[id])
            json_object_set_new(caches, name, list_of(g->attention[id], 2));
    }
    for (size_t i = 0; i < g->n_mixtures; i++)
        json_array_append_new(mixtures, mixture_json(&g->experts[i]));
    all =
        json_pack("{s:i, s:I, s:s, s:f, s:f, s:o, s:o, s:o}", "version", STATE_VERSION, "at",
                  (json_int_t)clock_wall_s(), "machine", g->machine, "op_s", g->op_s, "row_byte_s",
                  g->row_byte_s, "seconds", formats, "attention", caches, "mixtures", mixtures);
    kept_save(dir, path, all);
    free(path);
}
