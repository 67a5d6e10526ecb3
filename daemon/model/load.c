/* Reserves, allocates and reads: from a plan to a model that runs.  See model.h. */

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/thread.h"
#include "common/units.h"
#include "daemon/model/model_priv.h"

static const char *called(const struct model *m)
{
    return m->known_as ? m->known_as : m->name;
}

int model_refuse(const struct model *m, const struct model_plan *p, struct err *err)
{
    char need[24], have[24], weights[24], kv[24], scratch[24];
    struct str data = {0};
    int r;

    r = err_set(err, ERR_NOMEM,
                "'%.100s' needs %s (weights %s, kv %s, scratch %s) at a context of %zu, and %s can "
                "be free; "
                "%s",
                called(m), units_format_size(p->peak, need, sizeof need),
                units_format_size(p->account[ACCOUNT_WEIGHTS], weights, sizeof weights),
                units_format_size(p->account[ACCOUNT_KV], kv, sizeof kv),
                units_format_size(p->account[ACCOUNT_SCRATCH], scratch, sizeof scratch), p->n_ctx,
                units_format_size(p->free_bytes, have, sizeof have), p->advice);
    if (!err)
        return r;
    str_addf(&data, "{\"pool\":\"ram\",\"free\":%zu,\"wanted\":%zu,\"ctx\":%zu,\"accounts\":{",
             p->free_bytes, p->peak, p->n_ctx);
    for (int i = 0; i < ACCOUNT_COUNT; i++)
        str_addf(&data, "%s\"%s\":%zu", i ? "," : "", ledger_account_name(i), p->account[i]);
    str_adds(&data, "}}");
    if (data.len < sizeof err->data)
        memcpy(err->data, data.p, data.len + 1);
    str_clear(&data);
    return r;
}

void model_unload(struct model *m)
{
    sequence_destroy(m->sequence);
    residency_destroy(m->residency);
    program_destroy(m->program);
    if (m->scratch.data)
        m->place.ops->free(m->place.be, &m->scratch);
    if (m->scratch_charged)
        ledger_release(m->ledger, POOL_RAM, ACCOUNT_SCRATCH, m->scratch_charged);
    if (m->text_charged && !m->room.ledger) {
        ledger_release(m->ledger, POOL_RAM, ACCOUNT_TEXT, m->text_charged);
        m->text_charged = 0;
    }
    m->sequence = NULL;
    m->residency = NULL;
    m->program = NULL;
    m->scratch = (struct region){0};
    m->scratch_charged = m->kv_charged = 0;
    m->loaded = false;
}

static int reserve(struct model *m, const struct sizes *s, const char *who, struct err *err)
{
    size_t text = m->room.ledger ? 0 : s->account[ACCOUNT_TEXT];
    int r = text ? ledger_reserve(m->ledger, POOL_RAM, ACCOUNT_TEXT, text, who, err) : 0;

    if (r < 0)
        return r;
    m->text_charged += text;
    r = ledger_reserve(m->ledger, POOL_RAM, ACCOUNT_SCRATCH, s->account[ACCOUNT_SCRATCH], who, err);
    if (r >= 0)
        m->scratch_charged = s->account[ACCOUNT_SCRATCH];
    return r;
}

static int make_sequence(struct model *m, const struct model_options *o, const char *who,
                         struct err *err)
{
    struct sequence_layer *layers = XNEW_ARRAY(struct sequence_layer, m->hp.n_layers);
    struct sequence_layout layout = model_layout(m, o, layers);
    int r = sequence_create(&layout, m->ledger, m->place.ops, m->place.be, who, &m->sequence, err);

    free(layers);
    return r;
}

/* Everything is reserved before the first byte is read: a late refusal would waste the reading. */
static int fill(struct model *m, const struct model_options *o, size_t bytes,
                residency_progress_fn *progress, void *arg, const _Atomic bool *cancel,
                struct err *err)
{
    struct graph *g;
    const struct backend_ops *ops = m->place.ops;
    struct backend *be = m->place.be;
    char who[160];
    struct sizes s;
    int r;

    snprintf(who, sizeof who, "model '%.128s'", called(m));
    r = model_sizes(m, o, bytes, ops, be, &s, &m->program, err);
    if (r >= 0)
        r = reserve(m, &s, who, err);
    if (r >= 0)
        r = ops->alloc(be, model_scratch_bytes(m->program), &m->scratch, err);
    if (r >= 0)
        r = make_sequence(m, o, who, err);
    if (r < 0)
        return r;
    m->kv_charged = s.account[ACCOUNT_KV] + s.account[ACCOUNT_STATE];
    g = model_graph(m, o->n_ctx);
    m->residency = model_residency_create(m, g, o, m->ledger, ops, be, who);
    graph_destroy(g);
    if (o->faults)
        residency_set_engine(m->residency, o->faults);
    residency_set_state_dir(m->residency, o->state_dir);
    residency_set_placement(m->residency, &s.placement);
    return residency_load(m->residency, progress, arg, cancel, err);
}

int model_load(struct model *m, const struct model_options *opt, struct ledger *l,
               const struct backend_ops *ops, struct backend *be, residency_progress_fn *progress,
               void *arg, const _Atomic bool *cancel, struct err *err)
{
    struct model_options o;
    struct model_plan plan;
    size_t bytes = ledger_free_bytes(l, POOL_RAM) + m->text_charged;
    int r;

    thread_assert(THREAD_ENGINE);
    if (m->loaded)
        return err_set(err, ERR_CONFLICT, "model '%s' is loaded already", called(m));
    if (opt->bytes)
        bytes = MIN(bytes, opt->bytes);
    r = model_plan(m, opt, ops, be, bytes, &plan, err);
    if (r < 0)
        return r;
    if (!plan.fits)
        return model_refuse(m, &plan, err);
    o = *opt;
    o.n_ctx = plan.n_ctx;
    o.n_batch = plan.n_batch;
    r = model_options_check(m, &o, &o, err);
    if (r < 0)
        return r;
    m->ledger = l;
    m->place.ops = ops;
    m->place.be = be;
    r = fill(m, &o, bytes, progress, arg, cancel, err);
    if (r < 0) {
        model_unload(m);
        return r;
    }
    m->place.residency = m->residency;
    m->place.sequence = m->sequence;
    m->place.arena = m->scratch.data;
    m->place.scratch = (char *)m->scratch.data +
                       (model_scratch_bytes(m->program) - program_scratch_bytes(m->program));
    m->n_ctx = o.n_ctx;
    m->n_batch = o.n_batch;
    m->n_out = o.n_out;
    m->kv = o.kv;
    m->loaded = true;
    return 0;
}

static size_t fixed_bytes(const struct model *m)
{
    return m->scratch_charged + m->text_charged + m->kv_charged;
}

size_t model_held_bytes(const struct model *m)
{
    return fixed_bytes(m) + (m->residency ? residency_held_bytes(m->residency) : 0);
}

size_t model_floor_bytes(const struct model *m)
{
    return m->loaded ? fixed_bytes(m) + residency_floor_bytes(m->residency) : 0;
}

int model_resize(struct model *m, size_t bytes, struct err *err)
{
    return residency_resize(m->residency, bytes - MIN(bytes, fixed_bytes(m)), err);
}

struct residency *model_weights(struct model *m)
{
    return m->residency;
}
