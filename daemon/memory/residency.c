/* Extents, their homes, and who may be pinned.  See residency.h. */

#include "daemon/memory/residency.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/thread.h"
#include "daemon/memory/residency_priv.h"

#define EXTENT_ALIGN 64
/* A smaller weight costs a read of its own for next to nothing. */
#define DROP_MIN ((uint64_t)32 << 10)

/* A log names a model by key and value, where a sentence says what and which. */
static char *tag_of(const char *who)
{
    char *tag = xstrdup(who), *between = strstr(tag, " '");

    if (between)
        *between = '=';
    return tag;
}

struct residency *residency_create(const struct gguf *g, struct ledger *l,
                                   const struct backend_ops *ops, struct backend *be,
                                   const char *who)
{
    struct residency *r = XNEW(struct residency);

    r->g = g;
    r->ledger = l;
    r->ops = ops;
    r->be = be;
    r->who = xstrdup(who);
    r->tag = tag_of(who);
    r->max_rows = 1;
    r->n_used = 1;
    residency_set_probe(r, residency_probe_process, NULL);
    return r;
}

int residency_charge(struct residency *r, enum account account, size_t bytes, struct err *err)
{
    int rc = ledger_reserve(r->ledger, POOL_RAM, account, bytes, r->who, err);

    if (rc >= 0)
        r->charged[account] += bytes;
    return rc;
}

void residency_uncharge(struct residency *r, enum account account, size_t bytes)
{
    ledger_release(r->ledger, POOL_RAM, account, bytes);
    r->charged[account] -= bytes;
}

static void free_region(struct residency *r, struct region *region)
{
    if (region->data)
        r->ops->free(r->be, region);
    *region = (struct region){0};
}

static void give_back(struct residency *r)
{
    residency_close_streams(r);
    warm_stop(r->warm);
    r->warm = NULL;
    free_region(r, &r->dense);
    free_region(r, &r->slots);
    for (int a = 0; a < ACCOUNT_COUNT; a++)
        if (r->charged[a])
            residency_uncharge(r, (enum account)a, r->charged[a]);
    r->loaded = false;
}

void residency_destroy(struct residency *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->n_items; i++)
        assert(r->items[i].pins == 0);
    give_back(r);
    free(r->items);
    free(r->drops);
    free(r->drop_items);
    free(r->layers);
    free(r->streamed);
    free(r->units);
    free(r->unit_at);
    free(r->who);
    free(r->tag);
    free(r->state_dir);
    free(r->drives);
    free(r);
}

void residency_set_engine(struct residency *r, const struct reader_faults *engine)
{
    r->engine = *engine;
}

void residency_set_batch(struct residency *r, size_t max_rows, unsigned n_used)
{
    r->max_rows = max_rows;
    r->n_used = n_used;
}

extent_id residency_add(struct residency *r, const struct extent *e)
{
    assert(!r->sealed);
    ARRAY_GROW(r->items, r->n_items + 1, r->cap_items);
    r->items[r->n_items] = (struct item){.e = *e, .drop = NO_DROP};
    return (extent_id)r->n_items++;
}

/* -- the order of homes and slots ----------------------------------------------------- */

static size_t round_to(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

size_t residency_layer_index(struct residency *r, int layer)
{
    for (size_t i = 0; i < r->n_layers; i++)
        if (r->layers[i] == layer)
            return i;
    r->layers[r->n_layers] = layer;
    return r->n_layers++;
}

static struct unit *unit_of(struct residency *r, const struct extent *e)
{
    struct unit *u;

    for (size_t i = 0; i < r->in.n_units; i++)
        if (r->units[i].layer == e->layer && r->units[i].n_experts == e->n_experts &&
            r->units[i].n_parts < RESIDENCY_PARTS)
            return &r->units[i];
    u = &r->units[r->in.n_units++];
    *u = (struct unit){.layer = e->layer, .n_experts = e->n_experts};
    return u;
}

static void add_slices(struct residency *r, size_t i)
{
    struct item *it = &r->items[i];
    struct unit *u = unit_of(r, &it->e);
    uint64_t slice = it->e.bytes / it->e.n_experts;

    it->kind = ITEM_SLICES;
    it->unit = (size_t)(u - r->units);
    it->at = u->slot_bytes;
    u->slice_bytes[u->n_parts] = slice;
    u->parts[u->n_parts++] = (extent_id)i;
    u->slot_bytes += reader_slot_bytes_any(slice);
    r->most_slot = MAX(r->most_slot, u->slot_bytes);
    r->most_experts = MAX(r->most_experts, u->n_experts);
}

static void order_drops(struct residency *r, size_t n)
{
    size_t *order = XNEW_ARRAY(size_t, n);
    extent_id *ids = xmemdup(r->drop_items, n * sizeof *ids);

    placement_order(r->drops, n, r->n_layers, order);
    for (size_t k = 0; k < n; k++) {
        r->drop_items[k] = ids[order[k]];
        r->items[r->drop_items[k]].drop = k;
    }
    free(ids);
    free(order);
}

/* Kinds, and who may go. */
static void sort_out(struct residency *r)
{
    size_t n = 0;

    for (size_t i = 0; i < r->n_items; i++) {
        struct item *it = &r->items[i];

        if (it->e.n_experts > 1) {
            add_slices(r, i);
        } else if (it->e.n_rows) {
            it->kind = ITEM_ROWS;
            r->row_bytes = MAX(r->row_bytes, it->e.bytes / it->e.n_rows);
        } else if (it->e.layer >= 0 && it->e.bytes >= DROP_MIN) {
            r->drop_items[n] = (extent_id)i;
            r->drops[n++] = (struct placement_drop){
                .layer = (unsigned)residency_layer_index(r, it->e.layer),
                .home_bytes = round_to(it->e.bytes, READER_ALIGN),
                .ring_bytes = reader_slot_bytes(it->e.offset, it->e.bytes),
                .bytes = it->e.bytes,
            };
        }
    }
    order_drops(r, n);
    r->in.n_drops = n;
}

/* Sizes come from a proven directory: their sum is at most the file's, and a little. */
static void place_homes(struct residency *r)
{
    size_t at = 0;

    for (size_t i = 0; i < r->n_items; i++) {
        struct item *it = &r->items[i];

        if (it->kind != ITEM_WHOLE || it->drop != NO_DROP)
            continue;
        it->at = at;
        at += round_to(it->e.bytes, EXTENT_ALIGN);
    }
    at = round_to(at, READER_ALIGN);
    r->in.keep_bytes = at;
    for (size_t k = r->in.n_drops; k-- > 0;) {
        r->items[r->drop_items[k]].at = at;
        at += r->drops[k].home_bytes;
    }
    r->rows_at = at;
    for (size_t i = 0; i < r->n_items; i++)
        if (r->items[i].kind == ITEM_ROWS) {
            r->items[i].at = at;
            at += round_to(r->items[i].e.bytes, READER_ALIGN);
        }
    r->in.rows_bytes = at - r->rows_at;
}

void residency_seal(struct residency *r)
{
    size_t at = 0;

    if (r->sealed)
        return;
    r->sealed = true;
    r->drops = XNEW_ARRAY(struct placement_drop, r->n_items);
    r->drop_items = XNEW_ARRAY(extent_id, r->n_items);
    r->layers = XNEW_ARRAY(int, r->n_items);
    r->units = XNEW_ARRAY(struct unit, r->n_items);
    sort_out(r);
    place_homes(r);
    r->unit_at = XNEW_ARRAY(size_t, r->in.n_units + 1);
    for (size_t i = 0; i < r->in.n_units; i++) {
        r->units[i].at = r->unit_at[i] = at;
        at += r->units[i].slot_bytes;
    }
    r->unit_at[r->in.n_units] = at;
    r->n_landing = (unsigned)MIN((size_t)MAX(r->n_used, 2), r->most_experts);
    r->in.drops = r->drops;
    r->in.n_layers = r->n_layers;
    r->in.unit_at = r->unit_at;
    r->in.n_experts = r->most_experts;
    r->in.landing_bytes = r->n_landing * r->most_slot;
    r->in.rows_staging_bytes = r->in.rows_bytes ? rows_staging_bytes(r) : 0;
    r->in.book_bytes = alloc_page_round(experts_book_bytes(r));
}

void residency_plan(struct residency *r, size_t bytes, struct placement *ret)
{
    residency_seal(r);
    placement_choose(&r->in, bytes, ret);
}

void residency_floor(struct residency *r, struct placement *ret)
{
    residency_seal(r);
    placement_floor(&r->in, ret);
}

void residency_set_placement(struct residency *r, const struct placement *p)
{
    r->p = *p;
    r->has_placement = true;
}

void residency_need(struct residency *r, size_t *ret_weights_bytes, size_t *ret_staging_bytes)
{
    struct placement p;

    residency_plan(r, SIZE_MAX, &p);
    *ret_weights_bytes = p.dense_bytes + p.slots_bytes;
    *ret_staging_bytes = p.staging_bytes + (p.total_bytes ? residency_loading_bytes(r) : 0);
}

size_t residency_loading_bytes(const struct residency *r)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < r->n_items; i++)
        bytes += r->items[i].e.bytes;
    return stream_staging_bytes(bytes);
}

/* Bytes of the region of dense weights that are resident. */
size_t residency_dense_end(const struct residency *r, const struct placement *p)
{
    if (p->n_dropped)
        return r->items[r->drop_items[p->n_dropped - 1]].at;
    return r->rows_at + (p->tables ? r->in.rows_bytes : 0);
}

bool residency_is_dropped(const struct residency *r, const struct item *it)
{
    if (it->kind == ITEM_ROWS)
        return !r->p.tables;
    return it->kind == ITEM_WHOLE && it->drop != NO_DROP && it->drop < r->p.n_dropped;
}

/* -- loading ---------------------------------------------------------------------------- */

/* The whole of it: addresses alone; only what is resident is ever touched. */
static int alloc_homes(struct residency *r, struct err *err)
{
    size_t dense = r->rows_at + r->in.rows_bytes;
    size_t slots = placement_slots_bytes(&r->in, r->in.n_experts * r->in.n_units);
    int rc = dense ? r->ops->alloc(r->be, dense, &r->dense, err) : 0;

    return rc >= 0 && slots ? r->ops->alloc(r->be, slots, &r->slots, err) : rc;
}

void residency_warm(struct residency *r)
{
    warm_want(r->warm, 0, r->dense.data, r->p.dense_bytes);
    warm_want(r->warm, 1, r->slots.data, r->p.slots_bytes);
}

static int charge_placement(struct residency *r, struct err *err)
{
    bool whole = r->whole;
    int rc = residency_charge(r, ACCOUNT_WEIGHTS, r->p.dense_bytes + (whole ? r->p.slots_bytes : 0),
                              err);

    if (rc >= 0 && !whole)
        rc = residency_charge(r, ACCOUNT_CACHE, r->p.slots_bytes, err);
    if (rc >= 0)
        rc = residency_charge(r, ACCOUNT_STAGING, r->p.staging_bytes, err);
    return rc;
}

int residency_load(struct residency *r, residency_progress_fn *progress, void *arg,
                   const _Atomic bool *cancel, struct err *err)
{
    size_t staging = residency_loading_bytes(r);
    int rc;

    thread_assert(THREAD_ENGINE);
    assert(!r->loaded);
    residency_seal(r);
    if (!r->has_placement)
        residency_plan(r, SIZE_MAX, &r->p);
    r->want_dropped = r->p.n_dropped;
    r->want_depth = r->p.ring_depth;
    r->whole = placement_is_whole(&r->p);
    /* before what stays: the peak is then no higher */
    rc = residency_look_at_drives(r, progress, arg, cancel, err);
    if (rc >= 0)
        rc = charge_placement(r, err);
    if (rc >= 0 && r->p.total_bytes)
        rc = residency_charge(r, ACCOUNT_STAGING, staging, err);
    if (rc >= 0)
        rc = alloc_homes(r, err);
    if (rc >= 0) {
        r->warm = warm_start();
        residency_warm(r);
    }
    if (rc >= 0)
        rc = residency_read_in(r, progress, arg, cancel, err);
    if (rc >= 0 && r->p.total_bytes)
        residency_uncharge(r, ACCOUNT_STAGING, staging);
    if (rc >= 0 && r->p.mode != PLACEMENT_ALL)
        rc = residency_open_streams(r, err);
    if (rc >= 0 && r->whole && r->in.n_units)
        experts_open(r, true);
    if (rc < 0)
        give_back(r);
    else
        r->loaded = true;
    return rc < 0 ? rc : 0;
}

/* -- what is not all resident ------------------------------------------------------------- */

int residency_open_streams(struct residency *r, struct err *err)
{
    int rc = r->reader ? 0 : residency_open_reader(r, &r->reader, err);

    if (rc >= 0 && !r->p.tables && !r->rows.data && r->in.rows_bytes)
        rc = r->ops->alloc(r->be, r->in.rows_staging_bytes, &r->rows, err);
    if (rc >= 0 && !r->whole && r->in.n_units && !r->landing.data)
        rc = r->ops->alloc(r->be, r->in.landing_bytes, &r->landing, err);
    if (rc < 0)
        return rc;
    if (!r->whole && r->in.n_units && !r->units[0].experts)
        experts_open(r, false);
    r->current_layer = INT32_MIN;
    rc = r->p.n_dropped ? ring_open(r, err) : 0;
    r->closed = rc < 0;
    return rc;
}

void residency_close_streams(struct residency *r)
{
    if (r->reader)
        reader_destroy(r->reader);
    r->reader = NULL;
    ring_close(r);
    experts_close(r);
    free_region(r, &r->landing);
    free_region(r, &r->rows);
}

unsigned residency_pump(struct residency *r, unsigned min)
{
    struct read *done[16];
    unsigned n = reader_wait(r->reader, min, done, ARRAY_LEN(done));

    for (unsigned i = 0; i < n; i++) {
        struct flight *f = done[i]->user;

        if (f->kind == FLIGHT_RING)
            ring_landed(r, f);
        else if (f->kind == FLIGHT_EXPERT)
            experts_landed(r, f);
        else
            r->rows_pending--;
    }
    return n;
}

/* -- pins --------------------------------------------------------------------------------- */

int residency_pin(struct residency *r, extent_id id, const void **ret_data, struct err *err)
{
    struct item *it = &r->items[id];
    int rc = 0;

    if (!r->loaded)
        return err_set(err, ERR_INTERNAL, "tensor '%s' is used before it is loaded", it->e.name);
    if (r->ring.n_segments && it->e.layer != r->current_layer)
        ring_turn(r, it->e.layer);
    if (it->kind == ITEM_SLICES)
        *ret_data = (const char *)r->slots.data + r->units[it->unit].at + it->at;
    else if (it->kind == ITEM_ROWS && !r->p.tables)
        rc = err_set(err, ERR_INTERNAL, "table '%s' is not resident", it->e.name);
    else if (residency_is_dropped(r, it))
        rc = ring_pin(r, it, ret_data, err);
    else
        *ret_data = (const char *)r->dense.data + it->at;
    if (rc < 0)
        return rc;
    it->pins++;
    r->ring.pins += residency_is_dropped(r, it);
    return 0;
}

void residency_unpin(struct residency *r, extent_id id)
{
    assert(r->items[id].pins > 0);
    r->items[id].pins--;
    r->ring.pins -= residency_is_dropped(r, &r->items[id]);
}

bool residency_is_sliced(const struct residency *r, extent_id id)
{
    return r->items[id].kind == ITEM_SLICES && !r->whole;
}

size_t residency_stride(const struct residency *r, extent_id id)
{
    return r->items[id].kind == ITEM_SLICES ? r->unit_at[r->in.n_units] : 0;
}

bool residency_is_by_row(const struct residency *r, extent_id id)
{
    return r->items[id].kind == ITEM_ROWS && residency_is_dropped(r, &r->items[id]);
}
