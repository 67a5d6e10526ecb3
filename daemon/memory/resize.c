/*
 * A budget that changes while a model runs.  Slots go first, then depth of the
 * ring, then dense weights; whatever is cut off is the end of a region, and its
 * pages go back to the kernel at once.  Growing is the other way round: slots
 * count from now on and fill as they are missed; dense weights come home one
 * after another, between layers.
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/log.h"
#include "common/thread.h"
#include "common/units.h"
#include "daemon/memory/residency_priv.h"

/* Dense weights that come home between two layers. */
#define GROW_BYTES ((size_t)32 << 20)

size_t residency_held_bytes(const struct residency *r)
{
    size_t n = 0;

    for (int a = 0; a < ACCOUNT_COUNT; a++)
        n += r->charged[a];
    return n;
}

size_t residency_floor_bytes(struct residency *r)
{
    struct placement p;

    residency_seal(r);
    placement_choose_cut(&r->in, 0, r->p.tables, &p);
    return MIN(p.total_bytes, residency_held_bytes(r));
}

/*
 * What grows is nobody's request, so no answer tells that it did not.  A cause is
 * said once, and again only when growing has worked in between: every budget that
 * changes tries anew.
 */
static void stopped(struct residency *r, enum growth what, int rc, const struct err *err)
{
    static const char *const messages[GROWTH_COUNT] = {
        [GROWTH_WEIGHTS] = "dense weights go on streaming instead of coming home",
        [GROWTH_RING] = "the ring of dense weights is no deeper",
        [GROWTH_SLOTS] = "experts have no more slots",
        [GROWTH_TABLES] = "rows of tables go on being read instead of the tables",
    };

    if (r->stopped[what] == rc)
        return;
    r->stopped[what] = rc;
    if (rc < 0)
        log_warning(messages[what], "%s reason=\"%s\"", r->tag, err->text);
}

/* The account holds exactly that from now on; giving back cannot fail. */
static int hold(struct residency *r, enum account account, size_t bytes, struct err *err)
{
    if (bytes < r->charged[account])
        residency_uncharge(r, account, r->charged[account] - bytes);
    return bytes > r->charged[account]
               ? residency_charge(r, account, bytes - r->charged[account], err)
               : 0;
}

/* Gives the end of a region back to the kernel. */
static void cut(struct region *region, size_t from, size_t to)
{
    if (to > from)
        discard_pages((char *)region->data + from, to - from);
}

static void cut_slots(struct residency *r, size_t n_slots)
{
    size_t from = placement_slots_bytes(&r->in, n_slots), to;

    if (n_slots >= r->p.n_slots)
        return;
    experts_cut(r, n_slots);
    to = r->p.slots_bytes;
    r->p.n_slots = n_slots;
    r->p.slots_bytes = from;
    residency_warm(r);
    cut(&r->slots, from, to);
}

static void cut_dense(struct residency *r, const struct placement *to)
{
    struct placement p = *to;
    size_t before = r->p.dense_bytes, end;

    p.n_dropped = MAX(p.n_dropped, r->p.n_dropped);
    p.tables = to->tables && !p.n_dropped;
    end = residency_dense_end(r, &p);
    r->p.dense_bytes = end;
    residency_warm(r);
    cut(&r->dense, end, before);
    r->p.n_dropped = p.n_dropped;
    r->p.tables = p.tables;
    r->p.mode = p.n_dropped ? PLACEMENT_STREAM : PLACEMENT_EXPERTS;
}

/* A slot of the ring holds what any layer streams of the first so many drops. */
static size_t ring_slot_bytes(const struct residency *r, size_t n_dropped, size_t *ret_stream_bytes)
{
    size_t *layers = XNEW_ARRAY(size_t, r->n_layers), slot = 0, sum = 0;

    for (size_t k = 0; k < n_dropped; k++) {
        const struct placement_drop *d = &r->drops[k];

        layers[d->layer] += d->ring_bytes;
        slot = MAX(slot, layers[d->layer]);
        sum += d->bytes;
    }
    free(layers);
    *ret_stream_bytes = sum;
    return slot;
}

/* A ring for what is dropped, if only in `depth` slots of the size that it needs. */
static void size_ring(struct residency *r, size_t depth)
{
    r->p.ring_slot_bytes = ring_slot_bytes(r, r->p.n_dropped, &r->p.stream_bytes);
    r->p.ring_depth = r->p.n_dropped ? MAX(depth, (size_t)PLACEMENT_DEPTH_MIN) : 0;
}

static size_t staging_bytes(const struct residency *r)
{
    return (r->p.tables ? 0 : r->in.rows_staging_bytes) + r->in.landing_bytes + r->in.book_bytes +
           r->p.ring_depth * r->p.ring_slot_bytes;
}

int residency_reopen_ring(struct residency *r, struct err *err)
{
    int rc;

    r->p.staging_bytes = staging_bytes(r);
    rc = hold(r, ACCOUNT_STAGING, r->p.staging_bytes, err);
    return rc < 0 ? rc : residency_open_streams(r, err);
}

static void add_up(struct residency *r)
{
    r->p.staging_bytes = staging_bytes(r);
    r->p.total_bytes = r->p.dense_bytes + r->p.slots_bytes + r->p.staging_bytes;
}

/* Another ring; a flatter one, should there be no room for that depth. */
static void make_ring(struct residency *r, size_t depth)
{
    struct err err = {0};
    int rc;

    size_ring(r, depth);
    ring_close(r);
    r->closed = true;
    rc = residency_reopen_ring(r, &err);
    if (r->p.ring_depth >
        PLACEMENT_DEPTH_MIN) /* without the least the next batch fails, and tells */
        stopped(r, GROWTH_RING, rc, &err);
    if (rc < 0 && r->p.ring_depth > PLACEMENT_DEPTH_MIN) {
        size_ring(r, PLACEMENT_DEPTH_MIN);
        residency_reopen_ring(r, NULL);
    }
    add_up(r);
}

/* What has come of tables leaves again. */
static void forget_tables(struct residency *r)
{
    r->want_tables = false;
    cut(&r->dense, r->rows_at, r->rows_at + r->tables_home);
    r->tables_home = 0;
    if (r->tables_charged)
        residency_uncharge(r, ACCOUNT_WEIGHTS, r->in.rows_bytes);
    r->tables_charged = false;
}

static int shrink(struct residency *r, const struct placement *to, struct err *err)
{
    size_t depth = to->ring_depth;
    struct err full = {0};
    int rc;

    r->closed = true;
    if (r->reader)
        reader_cancel(r->reader);
    ring_forget(r);
    forget_tables(r);
    r->whole = false; /* each expert has the slot of its number, and may lose it */
    cut_slots(r, to->n_slots);
    cut_dense(r, to);
    size_ring(r, depth);
    if (r->ring.depth != r->p.ring_depth || r->ring.slot_bytes != r->p.ring_slot_bytes)
        ring_close(r);
    add_up(r);
    hold(r, ACCOUNT_WEIGHTS, r->p.dense_bytes, NULL);
    rc = hold(r, ACCOUNT_CACHE, r->p.slots_bytes, &full);
    if (rc < 0) {
        stopped(r, GROWTH_SLOTS, rc, &full);
        cut_slots(r, 0);
        add_up(r);
    }
    return residency_reopen_ring(r, err);
}

/* Slots count at once. */
static void grow_slots(struct residency *r, size_t n_slots)
{
    size_t bytes = placement_slots_bytes(&r->in, n_slots);
    struct err err = {0};
    int rc;

    if (n_slots <= r->p.n_slots)
        return;
    rc = hold(r, ACCOUNT_CACHE, bytes, &err);
    stopped(r, GROWTH_SLOTS, rc, &err);
    if (rc < 0)
        return;
    experts_grow(r, n_slots);
    r->p.n_slots = n_slots;
    r->p.slots_bytes = bytes;
    residency_warm(r);
    add_up(r);
}

static int bring_home(struct residency *r, struct err *err)
{
    size_t k = r->p.n_dropped - 1, staging = stream_staging_bytes(r->drops[k].bytes);
    int rc = residency_charge(r, ACCOUNT_STAGING, staging, err);

    if (rc < 0)
        return rc;
    rc = residency_charge(r, ACCOUNT_WEIGHTS, r->drops[k].home_bytes, err);
    if (rc >= 0) {
        rc = residency_read_home(r, r->drop_items[k], err);
        if (rc < 0) { /* some of it may have come */
            size_t at = r->items[r->drop_items[k]].at;

            cut(&r->dense, at, at + r->drops[k].home_bytes);
            residency_uncharge(r, ACCOUNT_WEIGHTS, r->drops[k].home_bytes);
        }
    }
    residency_uncharge(r, ACCOUNT_STAGING, staging);
    if (rc < 0)
        return rc;
    r->p.n_dropped--;
    r->p.dense_bytes += r->drops[k].home_bytes;
    return 0;
}

/* What bring_rest() holds at most beyond what it holds now, if the ring goes. */
static size_t rest_bytes(const struct residency *r)
{
    size_t homes = 0, staging = 0, stream;
    size_t ring = ring_slot_bytes(r, r->want_dropped, &stream) * r->want_depth;

    for (size_t k = r->want_dropped; k < r->p.n_dropped; k++) {
        homes += r->drops[k].home_bytes;
        staging = MAX(staging, stream_staging_bytes(r->drops[k].bytes));
    }
    return homes + MAX(staging, ring);
}

/*
 * The last few on their way home need more beside the ring than the budget has, and
 * less than the ring does: so it makes room, and all of them come at once.  -ERR_NOMEM
 * with *err as it was: that would not do either.
 */
static int bring_rest(struct residency *r, struct err *err)
{
    size_t ring = r->p.ring_depth * r->p.ring_slot_bytes;
    struct placement before = r->p;
    int rc = 0;

    if (rest_bytes(r) > ledger_free_bytes(r->ledger, POOL_RAM) + ring)
        return -ERR_NOMEM;
    ring_close(r);
    residency_uncharge(r, ACCOUNT_STAGING, ring);
    while (rc >= 0 && r->p.n_dropped > r->want_dropped)
        rc = bring_home(r, err);
    if (rc < 0) { /* what came leaves again, or there would be no room for a ring */
        cut_dense(r, &before);
        hold(r, ACCOUNT_WEIGHTS, r->p.dense_bytes, NULL);
    }
    return rc;
}

void residency_grow(struct residency *r)
{
    size_t bytes = 0;
    struct err err = {0};
    bool arrived;
    int rc = 0;

    reader_cancel(r->reader);
    ring_forget(r);
    while (rc >= 0 && r->p.n_dropped > r->want_dropped && bytes < GROW_BYTES) {
        bytes += r->drops[r->p.n_dropped - 1].home_bytes;
        rc = bring_home(r, &err);
    }
    if (rc == -ERR_NOMEM)
        rc = bring_rest(r, &err);
    stopped(r, GROWTH_WEIGHTS, MIN(rc, 0), &err);
    if (rc < 0)
        r->want_dropped = r->p.n_dropped;
    if (!r->p.n_dropped)
        r->p.mode = PLACEMENT_EXPERTS;
    arrived = rc >= 0 && r->p.n_dropped == r->want_dropped;
    make_ring(r, arrived ? r->want_depth : r->p.ring_depth);
    if (arrived)
        grow_slots(r, r->want_slots);
}

/* The next part of them, which may end within a table. */
static int read_tables(struct residency *r, struct err *err)
{
    size_t from = r->rows_at + r->tables_home, to, staging;
    int rc;

    to = MIN(from + GROW_BYTES, r->rows_at + r->in.rows_bytes);
    staging = stream_staging_bytes(to - from);
    rc = residency_charge(r, ACCOUNT_STAGING, staging, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < r->n_items && rc >= 0; i++)
        if (r->items[i].kind == ITEM_ROWS)
            rc = residency_read_part_home(r, (extent_id)i, from, to, staging, err);
    residency_uncharge(r, ACCOUNT_STAGING, staging);
    r->tables_home = to - r->rows_at; /* also what may have come of it when it failed */
    return rc;
}

/* All of them are there: rows are no longer looked up one by one. */
static void settle_tables(struct residency *r)
{
    r->want_tables = r->tables_charged = false;
    r->tables_home = 0;
    r->p.tables = true;
    r->p.dense_bytes += r->in.rows_bytes;
    residency_warm(r);
    r->ops->free(r->be, &r->rows);
    r->rows = (struct region){0};
    add_up(r);
    hold(r, ACCOUNT_STAGING, r->p.staging_bytes, NULL);
    if (!r->in.n_units && !r->p.n_dropped)
        r->p.mode = PLACEMENT_ALL;
}

static void grow_tables(struct residency *r)
{
    struct err err = {0};
    int rc = r->tables_charged ? 0 : residency_charge(r, ACCOUNT_WEIGHTS, r->in.rows_bytes, &err);

    r->tables_charged = rc >= 0;
    if (rc >= 0)
        rc = read_tables(r, &err);
    stopped(r, GROWTH_TABLES, MIN(rc, 0), &err);
    if (rc < 0)
        forget_tables(r);
    else if (r->tables_home == r->in.rows_bytes)
        settle_tables(r);
}

bool residency_comes_home(const struct residency *r)
{
    return r->loaded && (r->want_dropped < r->p.n_dropped || (r->want_tables && !r->p.n_dropped));
}

/* Fewer slots, as the cliff guard wants it, and those of before when its cap has ended. */
static int heed_guard(struct residency *r, struct err *err)
{
    struct placement to = r->p;
    size_t before = r->cliff.before;

    if (r->whole || !before)
        return 0;
    if (!r->cliff.guard.cap) {
        r->cliff.before = 0;
        grow_slots(r, before);
        return 0;
    }
    to.n_slots = r->cliff.guard.cap;
    return to.n_slots < r->p.n_slots ? shrink(r, &to, err) : 0;
}

int residency_between(struct residency *r, struct err *err)
{
    int rc = r->closed ? residency_reopen_ring(r, err) : 0;

    if (rc >= 0 && r->loaded)
        rc = heed_guard(r, err);
    if (rc < 0 || !residency_comes_home(r))
        return rc;
    if (r->want_dropped < r->p.n_dropped)
        residency_grow(r);
    else
        grow_tables(r);
    return rc;
}

/*
 * Caught halfway between two placements, with more than bytes although the one
 * that is wanted has less: drops more for now, or brings home what is left of
 * the way.
 */
static int leave_halfway(struct residency *r, size_t bytes, struct err *err)
{
    struct placement more;

    if (placement_choose_behind(&r->in, r->p.n_dropped, bytes, &more)) {
        more.n_slots = MIN(more.n_slots, r->p.n_slots);
        return shrink(r, &more, err);
    }
    while (r->want_dropped < r->p.n_dropped)
        residency_grow(r);
    return 0;
}

int residency_resize(struct residency *r, size_t bytes, struct err *err)
{
    char need[24], have[24];
    struct placement to, with;
    bool tables;

    thread_assert(THREAD_ENGINE);
    assert(!r->choice.unit);
    if (r->p.mode == PLACEMENT_ALL && r->p.total_bytes <= bytes)
        return 0;
    placement_choose_cut(&r->in, bytes, r->p.tables, &to);
    tables = r->in.rows_bytes && !r->p.tables &&
             placement_tables_return(&r->in, bytes, r->p.n_slots, &with);
    if (tables)
        to.n_slots = MIN(to.n_slots, with.n_slots);
    if (to.total_bytes > bytes)
        return err_set(err, ERR_NOMEM, "%s needs %s at least, and would have %s", r->who,
                       units_format_size_up(to.total_bytes, need, sizeof need),
                       units_format_size(bytes, have, sizeof have));
    if (r->whole && r->p.total_bytes <= bytes)
        return 0;
    if (r->cliff.guard.cap) {
        r->cliff.before = to.n_slots;
        to.n_slots = MIN(to.n_slots, r->cliff.guard.cap);
    }
    r->want_dropped = to.n_dropped;
    r->want_depth = to.ring_depth;
    if (r->whole || to.n_slots < r->p.n_slots || to.n_dropped > r->p.n_dropped ||
        to.ring_depth < r->p.ring_depth || to.tables < r->p.tables) {
        int rc = shrink(r, &to, err);

        if (rc < 0)
            return rc;
    }
    r->want_slots = to.n_slots;
    if (tables)
        r->want_tables = true;
    else
        forget_tables(r);
    if (r->p.total_bytes > bytes)
        return leave_halfway(r, bytes, err);
    if (r->p.n_dropped > to.n_dropped) /* goes on when the dense weights have come home */
        return 0;
    if (to.ring_depth > r->p.ring_depth) {
        reader_cancel(r->reader);
        ring_forget(r);
        make_ring(r, to.ring_depth);
    }
    grow_slots(r, to.n_slots);
    return 0;
}
