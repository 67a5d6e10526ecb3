/* What of a model is in memory, and how its cache of experts does; see engine.h. */
#include <math.h>
#include <stdlib.h>

#include "common/alloc.h"
#include "common/rpc.h"
#include "common/str.h"
#include "daemon/engine/engine_priv.h"

static json_t *bytes_json(uint64_t n)
{
    return json_integer((json_int_t)MIN(n, (uint64_t)INT64_MAX));
}

/* How many choices of decode missed 0, 1, … experts; as far as any did. */
static json_t *missed_json(const struct residency_layer *l)
{
    json_t *list = json_array();
    size_t n = RESIDENCY_MISSED;

    while (n && !l->missed[n - 1])
        n--;
    for (size_t k = 0; k < n; k++)
        json_array_append_new(list, bytes_json(l->missed[k]));
    return list;
}

static json_t *layers_json(const struct residency *r)
{
    json_t *list = json_array();

    for (size_t i = 0; i < residency_n_layers(r); i++) {
        struct residency_layer l;

        residency_layer(r, i, &l);
        json_array_append_new(
            list, json_pack("{s:i, s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:f, s:o}", "layer",
                            l.layer, "experts", (int)l.n_experts, "quota", (int)l.quota, "resident",
                            (int)l.resident, "slot_bytes", bytes_json(l.slot_bytes), "wanted",
                            bytes_json(l.wanted_bytes), "hit", bytes_json(l.hit_bytes), "read",
                            bytes_json(l.read_bytes), "over_read", bytes_json(l.over_bytes),
                            "wait_ms", (double)l.wait_us / 1000, "missed", missed_json(&l)));
    }
    return list;
}

/* Dense weights that have streamed, by layer. */
static json_t *streamed_json(const struct residency *r)
{
    json_t *list = json_array();
    struct residency_streamed s;

    for (size_t i = 0; i < residency_n_streamed(r); i++)
        if (residency_streamed(r, i, &s))
            json_array_append_new(list, json_pack("{s:i, s:o, s:o, s:o, s:o, s:f}", "layer",
                                                  s.layer, "wanted", bytes_json(s.wanted_bytes),
                                                  "read", bytes_json(s.read_bytes), "read_ahead",
                                                  bytes_json(s.ahead_bytes), "read_ahead_unused",
                                                  bytes_json(s.ahead_unused_bytes), "wait_ms",
                                                  (double)s.wait_us / 1000));
    return list;
}

/* Heat in eighths, rounded down: uses need no more, and a reply has a column of it for each layer. */
#define HEAT_STEPS 8

static json_t *heat_json(const struct residency_expert *x)
{
    return json_real(floor(x->heat * HEAT_STEPS) / HEAT_STEPS);
}

/* Of a layer a column for each of what is known of its experts. */
static json_t *experts_json(const struct residency *r, size_t i)
{
    json_t *tier = json_array(), *heat = json_array(), *last_use = json_array();
    json_t *reads = json_array(), *read = json_array();
    struct residency_layer l;

    residency_layer(r, i, &l);
    for (unsigned e = 0; e < l.n_experts; e++) {
        struct residency_expert x;

        residency_expert(r, i, e, &x);
        json_array_append_new(tier, json_string(x.resident ? "ram" : "drive"));
        json_array_append_new(heat, heat_json(&x));
        json_array_append_new(last_use, x.unused_tokens == RESIDENCY_NEVER
                                            ? json_null()
                                            : bytes_json(x.unused_tokens));
        json_array_append_new(reads, bytes_json(x.reads));
        json_array_append_new(read, bytes_json(x.read_bytes));
    }
    return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o}", "layer", l.layer, "tier", tier, "heat", heat,
                     "last_use", last_use, "reads", reads, "read", read);
}

/* Of a layer the decayed counts of uses, and a digit for each expert: is it there? */
static json_t *map_json(const struct residency *r, size_t i)
{
    json_t *heat = json_array(), *o;
    struct residency_layer l;
    struct str resident = {0};

    residency_layer(r, i, &l);
    for (unsigned e = 0; e < l.n_experts; e++) {
        struct residency_expert x;

        residency_expert(r, i, e, &x);
        str_adds(&resident, x.resident ? "1" : "0");
        json_array_append_new(heat, heat_json(&x));
    }
    o = json_pack("{s:i, s:s, s:o}", "layer", l.layer, "resident", str_text(&resident), "heat",
                  heat);
    str_clear(&resident);
    return o;
}

/* What layers may take of a reply, which is one line: there is more in it than these. */
#define PAGE_BYTES (RPC_LINE_MAX / 2)

static size_t add_layer(json_t *list, json_t *take_layer)
{
    size_t bytes = json_dumpb(take_layer, NULL, 0, 0);

    json_array_append_new(list, take_layer);
    return bytes;
}

/* From a layer on, one at least and as many as have room; where there are more, the next one. */
static void add_experts(json_t *report, const struct residency *r, const struct job *j)
{
    json_t *map = json_array(), *experts = json_array();
    size_t i = MIN(j->from, residency_n_layers(r)), bytes = 0;

    for (; i < residency_n_layers(r) && bytes < PAGE_BYTES; i++) {
        if (j->map)
            bytes += add_layer(map, map_json(r, i));
        if (j->experts)
            bytes += add_layer(experts, experts_json(r, i));
    }
    if (j->map)
        json_object_set(report, "map", map);
    if (j->experts)
        json_object_set(report, "experts", experts);
    if (i < residency_n_layers(r))
        json_object_set_new(report, "next", bytes_json(i));
    json_decref(map);
    json_decref(experts);
}

/* What a token takes: experts that it misses at the drive's rate, and the rest as measured. */
struct pace {
    double rate; /* of the drive while it reads, or as it was calibrated; 0: not known */
    double rest_s;
    double bytes; /* of all experts of a token */
};

static struct pace pace_of(const struct slot *s, const struct residency *r,
                           const struct residency_stats *st)
{
    struct pace p = {0};
    struct model_info info;
    double misses;

    p.rate = st->drive_rate;
    if (st->uses && st->busy_us) /* else it has read rows of a table, if anything */
        p.rate = (double)st->reader_bytes / ((double)st->busy_us / 1e6);
    if (p.rate <= 0 || s->tg_per_s <= 0)
        return (struct pace){0};
    model_info(s->model, &info);
    for (size_t i = 0; i < residency_n_layers(r); i++) {
        struct residency_layer l;

        residency_layer(r, i, &l);
        p.bytes += (double)l.slot_bytes * (double)info.n_experts_used;
    }
    misses = st->uses ? 1.0 - (double)st->hits / (double)st->uses : 0.0;
    p.rest_s = 1.0 / s->tg_per_s - p.bytes * misses / p.rate;
    p.rest_s = MAX(p.rest_s, 1e-4);
    return p;
}

static json_t *curve_json(const struct slot *s, const struct residency *r,
                          const struct residency_stats *st)
{
    struct curve_point points[CURVE_POINTS];
    struct pace pace = pace_of(s, r, st);
    json_t *list = json_array();

    if (residency_curve(r, points) < 0)
        return list;
    for (int i = 0; i < CURVE_POINTS; i++) {
        json_t *o = json_pack("{s:f, s:o, s:o, s:f}", "factor", points[i].factor, "bytes",
                              bytes_json(points[i].bytes), "slots", bytes_json(points[i].slots),
                              "hit_rate", points[i].hit_rate);

        if (pace.rate > 0)
            json_object_set_new(
                o, "tg_per_s",
                json_real(1.0 /
                          (pace.rest_s + pace.bytes * (1.0 - points[i].hit_rate) / pace.rate)));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *ring_json(const struct placement *p)
{
    return json_pack("{s:I, s:o, s:I, s:o}", "depth", (json_int_t)p->ring_depth, "bytes",
                     bytes_json(p->ring_depth * p->ring_slot_bytes), "weights",
                     (json_int_t)p->n_dropped, "bytes_per_token", bytes_json(p->stream_bytes));
}

static json_t *report(const struct slot *s, const struct job *j)
{
    const struct residency *r = model_weights(s->model);
    struct residency_stats st;
    double busy_s;
    json_t *o;

    residency_stats(r, &st);
    busy_s = (double)st.busy_us / 1e6;
    o = json_pack(
        "{s:s, s:s, s:o, s:o, s:o, s:o, s:I, s:o}", "model", s->name, "mode",
        placement_mode_name(st.placement.mode), "held", bytes_json(model_held_bytes(s->model)),
        "floor", bytes_json(model_floor_bytes(s->model)), "dense_bytes",
        bytes_json(st.placement.dense_bytes), "slots_bytes", bytes_json(st.placement.slots_bytes),
        "slots", (json_int_t)st.placement.n_slots, "ring", ring_json(&st.placement));
    json_object_set_new(o, "slots_cap", st.slots_cap ? bytes_json(st.slots_cap) : json_null());
    json_object_set_new(o, "resident", bytes_json(st.resident_bytes));
    json_object_set_new(o, "weights", bytes_json(st.bytes));
    json_object_set_new(o, "wanted", bytes_json(st.wanted_bytes));
    json_object_set_new(o, "hit", bytes_json(st.hit_bytes));
    json_object_set_new(o, "read", bytes_json(st.bytes_read));
    json_object_set_new(o, "over_read", bytes_json(st.over_bytes));
    json_object_set_new(o, "read_ahead", bytes_json(st.ahead_bytes));
    json_object_set_new(o, "read_ahead_unused", bytes_json(st.ahead_unused_bytes));
    json_object_set_new(o, "uses", bytes_json(st.uses));
    json_object_set_new(o, "hits", bytes_json(st.hits));
    json_object_set_new(o, "hit_rate",
                        json_real(st.uses ? (double)st.hits / (double)st.uses : 1.0));
    json_object_set_new(o, "wait_ms", json_real((double)st.wait_us / 1000));
    json_object_set_new(o, "busy_ms", json_real((double)st.busy_us / 1000));
    json_object_set_new(o, "device_mb_per_s",
                        json_real(busy_s > 0 ? (double)st.reader_bytes / 1e6 / busy_s : 0.0));
    json_object_set_new(o, "drive_mb_per_s", json_real(st.drive_rate / 1e6));
    json_object_set_new(o, "drive_wait_ms", json_real(st.drive_wait_s * 1e3));
    json_object_set_new(o, "reader", st.reader ? json_string(st.reader) : json_null());
    json_object_set_new(o, "direct", json_boolean(st.direct));
    json_object_set_new(o, "drive_why", json_string(st.drive_why));
    json_object_set_new(o, "layers", layers_json(r));
    json_object_set_new(o, "streamed", streamed_json(r));
    if (j->map || j->experts)
        add_experts(o, r, j);
    if (j->curve)
        json_object_set_new(o, "curve", curve_json(s, r, &st));
    return o;
}

void jobs_cache(struct letter *l, void *engine)
{
    struct engine *e = engine;
    struct job *j = job_of((struct work *)l);
    struct slot *s = j->work.slot;
    json_t *result = NULL;
    struct err err;
    int r = 0;

    if (!s->model)
        r = err_set_param(&err, ERR_CONFLICT, "model", "'%.100s' is not loaded", s->name);
    if (r >= 0 && j->trace)
        r = residency_trace(model_weights(s->model), *j->trace ? j->trace : NULL, s->name, &err);
    if (r >= 0)
        result = report(s, j);
    events_job_done(e, j, result, r < 0 ? &err : NULL);
}
