/* What is known of a model's memory; see residency.h. */

#include <stdio.h>
#include <string.h>

#include "common/alloc.h"
#include "daemon/memory/residency_priv.h"

static bool is_resident(const struct residency *r, const struct item *it)
{
    if (it->kind == ITEM_SLICES)
        return r->whole;
    return !residency_is_dropped(r, it);
}

static size_t filled_bytes(const struct residency *r)
{
    size_t bytes = 0;

    for (size_t i = 0; i < r->in.n_units && !r->whole; i++) {
        struct residency_layer l;

        residency_layer(r, i, &l);
        for (unsigned p = 0; p < r->units[i].n_parts; p++)
            bytes += l.resident * r->units[i].slice_bytes[p];
    }
    return bytes;
}

/* Of an expert's part, the mean: what is read at once. */
static size_t slice_bytes(const struct residency *r)
{
    size_t bytes = 0, n = 0;

    for (size_t i = 0; i < r->in.n_units; i++)
        for (unsigned p = 0; p < r->units[i].n_parts; p++, n++)
            bytes += r->units[i].slice_bytes[p];
    return n ? bytes / n : 0;
}

static void add_reader(const struct residency *r, struct residency_stats *ret)
{
    struct reader_stats s;

    ret->drive_rate = r->drive.rate;
    if (r->in.n_units && r->drive.rate > 0)
        ret->drive_rate = calibrate_rate(&r->drive, (double)slice_bytes(r));
    ret->drive_wait_s = r->drive.wait_s;
    ret->drive_why = r->drive.why;
    if (!r->reader)
        return;
    reader_stats(r->reader, &s);
    ret->reader = s.engine;
    ret->direct = s.direct;
    ret->bytes_read += s.read_bytes;
    ret->over_bytes = s.read_bytes - MIN(s.read_bytes, s.wanted_bytes);
    ret->busy_us = (uint64_t)s.busy_us;
    ret->reader_bytes = s.read_bytes;
}

void residency_settle(struct residency *r)
{
    while (r->reader && reader_pending(r->reader))
        residency_pump(r, 1);
}

void residency_stats(const struct residency *r, struct residency_stats *ret)
{
    *ret = (struct residency_stats){.extents = r->n_items,
                                    .bytes_read = r->bytes_read,
                                    .read_seconds = r->read_seconds,
                                    .drive_why = "",
                                    .placement = r->p};
    for (size_t i = 0; i < r->n_items; i++) {
        ret->bytes += r->items[i].e.bytes;
        if (r->loaded && is_resident(r, &r->items[i])) {
            ret->resident_extents++;
            ret->resident_bytes += r->items[i].e.bytes;
        }
    }
    if (!r->loaded)
        return;
    ret->resident_bytes += filled_bytes(r);
    for (size_t i = 0; i < residency_n_streamed(r); i++) {
        ret->ahead_bytes += r->streamed[i].ahead_bytes;
        ret->ahead_unused_bytes += r->streamed[i].ahead_unused_bytes;
    }
    ret->slots_cap = r->cliff.guard.cap;
    ret->uses = r->uses;
    ret->hits = r->hits;
    ret->wait_us = r->ring_wait_us + r->rows_wait_us;
    ret->wanted_bytes = r->ring_bytes;
    for (size_t i = 0; i < r->in.n_units; i++) {
        ret->wanted_bytes += r->units[i].wanted_bytes;
        ret->hit_bytes += r->units[i].hit_bytes;
        ret->wait_us += r->units[i].wait_us;
    }
    add_reader(r, ret);
}

size_t residency_n_layers(const struct residency *r)
{
    return r->sealed ? r->in.n_units : 0;
}

void residency_layer(const struct residency *r, size_t i, struct residency_layer *ret)
{
    const struct unit *u = &r->units[i];

    *ret = (struct residency_layer){.layer = u->layer,
                                    .n_experts = u->n_experts,
                                    .quota = r->whole ? u->n_experts : u->quota,
                                    .resident = experts_resident(u),
                                    .slot_bytes = u->slot_bytes,
                                    .wanted_bytes = u->wanted_bytes,
                                    .hit_bytes = u->hit_bytes,
                                    .read_bytes = u->read_bytes,
                                    .wait_us = u->wait_us};
    ret->over_bytes = u->read_bytes - MIN(u->read_bytes, u->wanted_bytes - u->hit_bytes);
    memcpy(ret->missed, u->missed, sizeof ret->missed);
}

size_t residency_n_streamed(const struct residency *r)
{
    return r->streamed ? r->n_layers : 0;
}

bool residency_streamed(const struct residency *r, size_t i, struct residency_streamed *ret)
{
    const struct streamed *s = &r->streamed[i];

    *ret = (struct residency_streamed){.layer = r->layers[i],
                                       .wanted_bytes = s->wanted_bytes,
                                       .read_bytes = s->read_bytes,
                                       .wait_us = s->wait_us,
                                       .ahead_bytes = s->ahead_bytes,
                                       .ahead_unused_bytes = s->ahead_unused_bytes};
    return s->wanted_bytes || s->read_bytes;
}

void residency_expert(const struct residency *r, size_t i, unsigned e, struct residency_expert *ret)
{
    const struct unit *u = &r->units[i];

    *ret = (struct residency_expert){.unused_tokens = RESIDENCY_NEVER};
    if (!u->experts)
        return;
    ret->resident = u->experts[e].resident;
    ret->heat = policy_heat(&u->experts[e], r->token);
    ret->reads = u->told[e].reads;
    ret->read_bytes = u->told[e].read_bytes;
    if (u->told[e].last_use)
        ret->unused_tokens = r->passed - u->told[e].last_use;
}

int residency_curve(const struct residency *r, struct curve_point ret[CURVE_POINTS])
{
    return r->curve ? curve_points(r->curve, r->p.slots_bytes, ret) : -1;
}

bool residency_curve_profile(const struct residency *r, struct curve_profile *ret)
{
    return curve_profile_make(r->curve, ret);
}

int residency_trace(struct residency *r, const char *path, const char *model, struct err *err)
{
    struct trace_shape shape = {.n_layers = (unsigned)r->in.n_units,
                                .n_experts = (unsigned)r->most_experts,
                                .n_used = r->n_used};
    int rc = choice_end_trace(r, err);

    if (!path || rc < 0)
        return rc;
    if (!r->in.n_units)
        return err_set(err, ERR_CONFLICT, "%s has no experts, so there is nothing to record",
                       r->who);
    snprintf(shape.model, sizeof shape.model, "%s", model);
    return trace_writer_open(path, &shape, &r->trace, err);
}
