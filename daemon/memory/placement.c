/* What stays in memory; see placement.h. */
#include "daemon/memory/placement.h"

#include <stdlib.h>

#include "common/alloc.h"

/*
 * A new token's row is next to nothing to read, and a whole trip to the drive that
 * the token waits for.  Slots that are so many times a table's bytes hardly miss
 * what it takes of them.
 */
#define SLOTS_PER_TABLE 128

const char *placement_mode_name(enum placement_mode m)
{
    static const char *const names[] = {"all", "rows", "experts", "stream"};

    return names[m];
}

bool placement_is_whole(const struct placement *p)
{
    return p->mode == PLACEMENT_ALL || p->mode == PLACEMENT_ROWS;
}

/* -- the order of drops --------------------------------------------------------------- */

struct ranked {
    size_t index, round, spread, bytes;
    unsigned layer;
};

/* The bits of i turned round: 0, then the middle, then the quarters. */
static size_t spread_of(size_t i, size_t n)
{
    size_t r = 0;

    for (size_t bit = 1; bit < n; bit <<= 1) {
        r = r << 1 | (i & 1);
        i >>= 1;
    }
    return r;
}

static int by_layer_and_size(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    if (x->layer != y->layer)
        return x->layer < y->layer ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static int by_round(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    if (x->round != y->round)
        return x->round < y->round ? -1 : 1;
    if (x->spread != y->spread)
        return x->spread < y->spread ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

void placement_order(struct placement_drop *drops, size_t n, size_t n_layers, size_t *ret_order)
{
    struct ranked *list = XNEW_ARRAY(struct ranked, n);
    struct placement_drop *copy = xmemdup(drops, n * sizeof *drops);

    for (size_t i = 0; i < n; i++)
        list[i] = (struct ranked){.index = i,
                                  .layer = drops[i].layer,
                                  .bytes = drops[i].bytes,
                                  .spread = spread_of(drops[i].layer, n_layers)};
    qsort(list, n, sizeof *list, by_layer_and_size);
    for (size_t i = 0; i < n; i++)
        list[i].round = i && list[i].layer == list[i - 1].layer ? list[i - 1].round + 1 : 0;
    qsort(list, n, sizeof *list, by_round);
    for (size_t i = 0; i < n; i++) {
        drops[i] = copy[list[i].index];
        ret_order[i] = list[i].index;
    }
    free(copy);
    free(list);
}

/* -- slots ------------------------------------------------------------------------------ */

size_t placement_slots_bytes(const struct placement_input *in, size_t n)
{
    if (!in->n_units)
        return 0;
    return n / in->n_units * in->unit_at[in->n_units] + in->unit_at[n % in->n_units];
}

size_t placement_quota(const struct placement_input *in, size_t n_slots, size_t unit)
{
    return n_slots / in->n_units + (unit < n_slots % in->n_units);
}

/* The most slots that fit. */
static size_t slots_in(const struct placement_input *in, size_t bytes)
{
    size_t n, row;

    if (!in->n_units)
        return 0;
    row = in->unit_at[in->n_units];
    if (bytes / row >= in->n_experts)
        return in->n_experts * in->n_units;
    n = bytes / row * in->n_units;
    for (size_t left = bytes % row, i = 1; i < in->n_units && in->unit_at[i] <= left; i++)
        n++;
    return n;
}

/* -- the choice ------------------------------------------------------------------------- */

static size_t drops_bytes(const struct placement_input *in)
{
    size_t sum = 0;

    for (size_t i = 0; i < in->n_drops; i++)
        sum += in->drops[i].home_bytes;
    return sum;
}

static void sum_up(const struct placement_input *in, struct placement *p)
{
    p->slots_bytes = placement_slots_bytes(in, p->n_slots);
    p->total_bytes = p->dense_bytes + p->slots_bytes + p->staging_bytes;
}

static struct placement all_resident(const struct placement_input *in)
{
    struct placement p = {.mode = PLACEMENT_ALL,
                          .tables = true,
                          .n_slots = in->n_experts * in->n_units,
                          .dense_bytes = in->keep_bytes + drops_bytes(in) + in->rows_bytes,
                          .staging_bytes = in->book_bytes};

    sum_up(in, &p);
    return p;
}

/* All dense weights, and no slots. */
static struct placement dense_resident(const struct placement_input *in, bool tables)
{
    struct placement p = {.mode = PLACEMENT_EXPERTS, .tables = tables};

    p.dense_bytes = in->keep_bytes + drops_bytes(in) + (tables ? in->rows_bytes : 0);
    p.staging_bytes = (tables ? 0 : in->rows_staging_bytes) + in->landing_bytes + in->book_bytes;
    sum_up(in, &p);
    return p;
}

/*
 * Streams what it must: the first number of drops, least or more, that fits, with
 * a ring of that depth.  bytes 0: the number that needs least.  False: none fits.
 */
static bool stream(const struct placement_input *in, size_t depth, size_t least, size_t bytes,
                   struct placement *ret)
{
    size_t *layers = XNEW_ARRAY(size_t, in->n_layers);
    struct placement p = dense_resident(in, false), best = {.total_bytes = SIZE_MAX};
    size_t fixed = p.staging_bytes;
    bool fits = false;

    p.mode = PLACEMENT_STREAM;
    p.ring_depth = depth;
    for (size_t i = 0; i < in->n_drops && !fits; i++) {
        const struct placement_drop *d = &in->drops[i];

        layers[d->layer] += d->ring_bytes;
        p.ring_slot_bytes = MAX(p.ring_slot_bytes, layers[d->layer]);
        p.dense_bytes -= d->home_bytes;
        p.stream_bytes += d->bytes;
        p.n_dropped = i + 1;
        p.staging_bytes = fixed + depth * p.ring_slot_bytes;
        sum_up(in, &p);
        fits = p.total_bytes <= bytes && p.n_dropped >= least;
        if (p.total_bytes < best.total_bytes)
            best = p;
    }
    free(layers);
    *ret = fits ? p : best;
    return fits;
}

static void floor_of(const struct placement_input *in, bool tables, struct placement *ret)
{
    const struct placement ways[] = {dense_resident(in, false), dense_resident(in, tables)};
    struct placement streamed;

    *ret = all_resident(in);
    for (size_t i = 0; i < ARRAY_LEN(ways); i++)
        if (ways[i].total_bytes < ret->total_bytes)
            *ret = ways[i];
    stream(in, PLACEMENT_DEPTH_MIN, 0, 0, &streamed);
    if (streamed.total_bytes < ret->total_bytes)
        *ret = streamed;
}

void placement_floor(const struct placement_input *in, struct placement *ret)
{
    floor_of(in, true, ret);
}

/* A deeper ring keeps the drive busy over a layer that computes for long, if it costs next to nothing. */
static bool stream_in(const struct placement_input *in, size_t bytes, struct placement *ret)
{
    struct placement deep;

    if (!stream(in, PLACEMENT_DEPTH_MIN, 0, bytes, ret))
        return false;
    if (stream(in, PLACEMENT_DEPTH, 0, bytes, &deep) &&
        deep.stream_bytes <= ret->stream_bytes + ret->stream_bytes / 32)
        *ret = deep;
    return true;
}

/* Tables stay beside all slots, or beside many times what they take beyond the reading of rows. */
static bool with_tables(const struct placement_input *in, size_t bytes, struct placement *ret)
{
    size_t more = in->rows_bytes - MIN(in->rows_bytes, in->rows_staging_bytes);
    size_t all = in->n_experts * in->n_units;

    *ret = dense_resident(in, true);
    if (!in->rows_bytes || ret->total_bytes > bytes)
        return false;
    ret->n_slots = slots_in(in, bytes - ret->total_bytes);
    sum_up(in, ret);
    return ret->n_slots >= all || ret->slots_bytes / SLOTS_PER_TABLE >= more;
}

bool placement_tables_return(const struct placement_input *in, size_t bytes, size_t n_slots,
                             struct placement *ret)
{
    return with_tables(in, bytes - MIN(bytes, in->rows_staging_bytes), ret) &&
           ret->n_slots >= n_slots;
}

void placement_choose_cut(const struct placement_input *in, size_t bytes, bool tables,
                          struct placement *ret)
{
    struct placement p = dense_resident(in, false);

    if (tables && with_tables(in, bytes, ret))
        return;
    if (p.total_bytes > bytes && !stream_in(in, bytes, &p)) {
        floor_of(in, tables, ret);
        return;
    }
    p.n_slots = slots_in(in, bytes - p.total_bytes);
    sum_up(in, &p);
    *ret = p;
}

bool placement_choose_behind(const struct placement_input *in, size_t n_dropped, size_t bytes,
                             struct placement *ret)
{
    if (!stream(in, PLACEMENT_DEPTH_MIN, n_dropped, bytes, ret))
        return false;
    ret->n_slots = slots_in(in, bytes - ret->total_bytes);
    sum_up(in, ret);
    return true;
}

void placement_choose(const struct placement_input *in, size_t bytes, struct placement *ret)
{
    struct placement p = all_resident(in);

    if (p.total_bytes > bytes && in->rows_bytes) {
        p.mode = PLACEMENT_ROWS;
        p.tables = false;
        p.dense_bytes -= in->rows_bytes;
        p.staging_bytes += in->rows_staging_bytes;
        sum_up(in, &p);
    }
    if (p.total_bytes <= bytes)
        *ret = p;
    else
        placement_choose_cut(in, bytes, true, ret);
}
