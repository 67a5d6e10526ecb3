/* KV caches of all layers in one region, recurrent states in another, and the ids they hold.  See sequence.h. */

#include "daemon/sequence/sequence.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/thread.h"

#define CACHE_ALIGN 64

struct cache {
    struct tensor k, v, groups, index; /* fmt NULL: the layer keeps nothing */
    struct tensor conv, state;         /* likewise */
    size_t window;                     /* of k and v; 0: they hold all positions */
};

/* The recurrent state of all layers at a position. */
struct checkpoint {
    size_t at; /* 0: none, as the start needs none */
    uint64_t age;
};

struct sequence {
    struct ledger *ledger;
    const struct backend_ops *ops;
    struct backend *be;
    struct cache *caches; /* [n_layers] */
    size_t n_layers;
    struct region region;
    struct region states; /* the present ones, then those of the checkpoints */
    size_t state_bytes;   /* of one set of them; 0: not recurrent */
    struct checkpoint *checkpoints;
    size_t n_checkpoints;
    uint64_t clock;
    int32_t *ids; /* [n_ctx] */
    size_t n_ctx;
    size_t length;
    size_t
        high; /* positions that may have been stored since the start, of batches that failed too */
    size_t charged, state_charged;
};

/* Saturating: a hostile layout ends at SIZE_MAX, which no budget holds. */
static size_t mul_sat(size_t a, size_t b)
{
    size_t r;

    return __builtin_mul_overflow(a, b, &r) ? SIZE_MAX : r;
}

static size_t add_sat(size_t a, size_t b)
{
    size_t r;

    return __builtin_add_overflow(a, b, &r) ? SIZE_MAX : r;
}

static size_t all_chunks(const struct sequence_layout *l)
{
    return l->n_ctx / OP_KV_CHUNK + (l->n_ctx % OP_KV_CHUNK != 0);
}

/*
 * Of a layer: those of all positions, or of the ring of a window.  A batch of r
 * rows sees window - 1 + r positions, which lie in two chunks more than they
 * fill whole ones, at most.
 */
static size_t n_chunks(const struct sequence_layout *l, const struct sequence_layer *y)
{
    size_t ring = (y->window + l->n_batch + SEQUENCE_BACK) / OP_KV_CHUNK + 2;

    return y->window ? MIN(ring, all_chunks(l)) : all_chunks(l);
}

/* Of keys of groups, or index keys, which are of groups too where there are any. */
static size_t n_group_chunks(const struct sequence_layout *l, const struct sequence_layer *y)
{
    size_t n = l->n_ctx / MAX(y->group, 1U);

    return y->group ? n / OP_KV_CHUNK + 1 : n_chunks(l, y);
}

/* Bytes of the keys, or of the values, of one layer. */
static size_t cache_bytes(const struct format *fmt, unsigned heads, unsigned dim, size_t chunks)
{
    size_t row = format_row_bytes(fmt, dim);
    size_t bytes = mul_sat(mul_sat(row * OP_KV_CHUNK, heads), chunks);

    return add_sat(bytes, CACHE_ALIGN - 1) / CACHE_ALIGN * CACHE_ALIGN;
}

static size_t k_bytes(const struct sequence_layout *l, const struct sequence_layer *y)
{
    return cache_bytes(l->k_fmt, y->n_kv_heads, y->k_dim, n_chunks(l, y));
}

static size_t v_bytes(const struct sequence_layout *l, const struct sequence_layer *y)
{
    return cache_bytes(l->v_fmt, y->n_kv_heads, y->v_dim, n_chunks(l, y));
}

static size_t group_bytes(const struct sequence_layout *l, const struct sequence_layer *y,
                          unsigned dim)
{
    return cache_bytes(l->k_fmt, 1, dim, n_group_chunks(l, y));
}

struct tensor sequence_shape_conv(const struct sequence_layout *l, size_t layer)
{
    const struct sequence_layer *y = &l->layers[layer];

    return tensor_make(format_of(FORMAT_f32), NULL, y->conv_width, y->conv_rows, 1, 1);
}

static size_t state_blocks(const struct sequence_layer *y)
{
    return ((size_t)y->state_cols + OP_STATE_COLS - 1) / OP_STATE_COLS;
}

struct tensor sequence_shape_state(const struct sequence_layout *l, size_t layer)
{
    const struct sequence_layer *y = &l->layers[layer];

    return tensor_make(format_of(FORMAT_f32), NULL, OP_STATE_COLS, y->state_rows, state_blocks(y),
                       y->state_heads);
}

/* Saturating, and a multiple of the alignment. */
static size_t f32_bytes(size_t a, size_t b, size_t c)
{
    size_t bytes = mul_sat(mul_sat(mul_sat(a, b), c), sizeof(float));

    return add_sat(bytes, CACHE_ALIGN - 1) / CACHE_ALIGN * CACHE_ALIGN;
}

static size_t conv_bytes(const struct sequence_layer *y)
{
    return f32_bytes(y->conv_width, y->conv_rows, 1);
}

static size_t state_bytes(const struct sequence_layer *y)
{
    return f32_bytes(mul_sat(OP_STATE_COLS, state_blocks(y)), y->state_rows, y->state_heads);
}

/* Of one set of states. */
static size_t states_bytes(const struct sequence_layout *l)
{
    size_t sum = 0;

    for (size_t i = 0; i < l->n_layers; i++)
        sum = add_sat(sum, add_sat(conv_bytes(&l->layers[i]), state_bytes(&l->layers[i])));
    return sum;
}

static size_t region_bytes(const struct sequence_layout *l)
{
    size_t sum = 0;

    for (size_t i = 0; i < l->n_layers; i++) {
        const struct sequence_layer *y = &l->layers[i];

        if (!y->n_kv_heads)
            continue;
        sum = add_sat(sum, k_bytes(l, y));
        if (!y->v_in_k)
            sum = add_sat(sum, v_bytes(l, y));
        if (y->group)
            sum = add_sat(sum, group_bytes(l, y, y->k_dim));
        if (y->index_dim)
            sum = add_sat(sum, group_bytes(l, y, y->index_dim));
    }
    return sum;
}

static size_t ids_bytes(const struct sequence_layout *l)
{
    size_t bytes = mul_sat(l->n_ctx, sizeof(int32_t));

    return bytes > SIZE_MAX / 2 ? SIZE_MAX : alloc_page_round(bytes);
}

size_t sequence_bytes(const struct sequence_layout *layout, const struct backend_ops *ops,
                      const struct backend *be)
{
    size_t region = region_bytes(layout);

    if (region > SIZE_MAX / 2)
        return SIZE_MAX;
    return add_sat(region ? ops->alloc_bytes(be, region) : 0, ids_bytes(layout));
}

struct tensor sequence_shape_k(const struct sequence_layout *l, size_t layer)
{
    const struct sequence_layer *y = &l->layers[layer];

    return tensor_make(l->k_fmt, NULL, y->k_dim, OP_KV_CHUNK, y->n_kv_heads, n_chunks(l, y));
}

struct tensor sequence_shape_v(const struct sequence_layout *l, size_t layer)
{
    const struct sequence_layer *y = &l->layers[layer];
    struct tensor v;

    if (!y->v_in_k)
        return tensor_make(l->v_fmt, NULL, y->v_dim, OP_KV_CHUNK, y->n_kv_heads, n_chunks(l, y));
    v = sequence_shape_k(l, layer);
    v.n[0] = y->v_dim;
    return v;
}

struct tensor sequence_shape_groups(const struct sequence_layout *l, size_t layer)
{
    return tensor_make(l->k_fmt, NULL, l->layers[layer].k_dim, OP_KV_CHUNK, 1,
                       n_group_chunks(l, &l->layers[layer]));
}

struct tensor sequence_shape_index(const struct sequence_layout *l, size_t layer)
{
    return tensor_make(l->k_fmt, NULL, l->layers[layer].index_dim, OP_KV_CHUNK, 1,
                       n_group_chunks(l, &l->layers[layer]));
}

size_t sequence_state_bytes(const struct sequence_layout *layout, const struct backend_ops *ops,
                            const struct backend *be)
{
    size_t region = mul_sat(states_bytes(layout), add_sat(layout->n_checkpoints, 1));

    if (region > SIZE_MAX / 2)
        return SIZE_MAX;
    return region ? ops->alloc_bytes(be, region) : 0;
}

static void cut_states(struct sequence *s, const struct sequence_layout *l)
{
    char *at = s->states.data;

    for (size_t i = 0; i < l->n_layers && at; i++) {
        const struct sequence_layer *y = &l->layers[i];

        if (y->conv_rows) {
            s->caches[i].conv = sequence_shape_conv(l, i);
            s->caches[i].conv.data = at;
            at += conv_bytes(y);
        }
        if (y->state_heads) {
            s->caches[i].state = sequence_shape_state(l, i);
            s->caches[i].state.data = at;
            at += state_bytes(y);
        }
    }
}

static void cut_caches(struct sequence *s, const struct sequence_layout *l)
{
    char *at = s->region.data;

    for (size_t i = 0; i < l->n_layers; i++) {
        const struct sequence_layer *y = &l->layers[i];
        struct cache *c = &s->caches[i];

        if (!y->n_kv_heads)
            continue;
        s->caches[i].window = y->window;
        c->k = sequence_shape_k(l, i);
        c->v = sequence_shape_v(l, i);
        c->k.data = c->v.data = at;
        at += k_bytes(l, y);
        if (!y->v_in_k) {
            c->v.data = at;
            at += v_bytes(l, y);
        }
        if (y->group) {
            c->groups = sequence_shape_groups(l, i);
            c->groups.data = at;
            at += group_bytes(l, y, y->k_dim);
        }
        if (y->index_dim) {
            c->index = sequence_shape_index(l, i);
            c->index.data = at;
            at += group_bytes(l, y, y->index_dim);
        }
    }
}

static int check_dim(const struct format *f, unsigned dim, size_t layer, struct err *err)
{
    if (dim % f->block_elems == 0)
        return 0;
    return err_set_param(err, ERR_INVALID, "kv",
                         "KV format %s needs heads of a multiple of %u, layer %zu has %u; use f16",
                         f->name, f->block_elems, layer, dim);
}

static int check_layout(const struct sequence_layout *l, struct err *err)
{
    for (size_t i = 0; i < l->n_layers; i++) {
        int r = 0;

        if (l->layers[i].n_kv_heads)
            r = check_dim(l->k_fmt, l->layers[i].k_dim, i, err);
        if (r >= 0 && l->layers[i].n_kv_heads)
            r = check_dim(l->v_fmt, l->layers[i].v_dim, i, err);
        if (r >= 0)
            r = check_dim(l->k_fmt, l->layers[i].index_dim, i, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int reserve(struct sequence *s, const struct sequence_layout *l, const char *who,
                   struct err *err)
{
    size_t kv = sequence_bytes(l, s->ops, s->be);
    size_t state = sequence_state_bytes(l, s->ops, s->be);
    int r = ledger_reserve(s->ledger, POOL_RAM, ACCOUNT_KV, kv, who, err);

    if (r < 0)
        return r;
    s->charged = kv;
    if (!state)
        return 0;
    r = ledger_reserve(s->ledger, POOL_RAM, ACCOUNT_STATE, state, who, err);
    if (r >= 0)
        s->state_charged = state;
    return r;
}

/* All that has been reserved; the pages come as they are used. */
static int allocate(struct sequence *s, const struct sequence_layout *l, struct err *err)
{
    int r = 0;

    s->caches = XNEW_ARRAY(struct cache, MAX(l->n_layers, 1));
    s->ids = alloc_pages(MAX(l->n_ctx, 1) * sizeof(int32_t), 0);
    if (!s->ids)
        return err_set(err, ERR_NOMEM, "the kernel has no memory for the ids of %zu positions",
                       s->n_ctx);
    s->state_bytes = states_bytes(l);
    if (region_bytes(l))
        r = s->ops->alloc(s->be, region_bytes(l), &s->region, err);
    if (r >= 0 && s->state_bytes)
        r = s->ops->alloc(s->be, s->state_bytes * (l->n_checkpoints + 1), &s->states, err);
    if (r < 0)
        return r;
    s->n_checkpoints = s->state_bytes ? l->n_checkpoints : 0;
    s->checkpoints = XNEW_ARRAY(struct checkpoint, MAX(s->n_checkpoints, 1));
    cut_caches(s, l);
    cut_states(s, l);
    return 0;
}

int sequence_create(const struct sequence_layout *layout, struct ledger *l,
                    const struct backend_ops *ops, struct backend *be, const char *who,
                    struct sequence **ret, struct err *err)
{
    struct sequence *s;
    int r;

    thread_assert(THREAD_ENGINE);
    r = check_layout(layout, err);
    if (r < 0)
        return r;
    s = XNEW(struct sequence);
    s->ledger = l;
    s->ops = ops;
    s->be = be;
    s->n_ctx = layout->n_ctx;
    s->n_layers = layout->n_layers;
    r = reserve(s, layout, who, err);
    if (r >= 0)
        r = allocate(s, layout, err);
    if (r < 0) {
        sequence_destroy(s);
        return r;
    }
    *ret = s;
    return 0;
}

void sequence_destroy(struct sequence *s)
{
    if (!s)
        return;
    if (s->region.data)
        s->ops->free(s->be, &s->region);
    if (s->states.data)
        s->ops->free(s->be, &s->states);
    if (s->ids)
        free_pages(s->ids, MAX(s->n_ctx, 1) * sizeof(int32_t));
    ledger_release(s->ledger, POOL_RAM, ACCOUNT_KV, s->charged);
    ledger_release(s->ledger, POOL_RAM, ACCOUNT_STATE, s->state_charged);
    free(s->checkpoints);
    free(s->caches);
    free(s);
}

size_t sequence_n_ctx(const struct sequence *s)
{
    return s->n_ctx;
}

size_t sequence_length(const struct sequence *s)
{
    return s->length;
}

const int32_t *sequence_ids(const struct sequence *s)
{
    return s->ids;
}

bool sequence_recurrent(const struct sequence *s)
{
    return s->state_bytes > 0;
}

/* The checkpoint of the latest position up to n; NULL: only the start. */
static const struct checkpoint *checkpoint_before(const struct sequence *s, size_t n)
{
    const struct checkpoint *best = NULL;

    for (size_t i = 0; i < s->n_checkpoints; i++)
        if (s->checkpoints[i].at && s->checkpoints[i].at <= n &&
            (!best || s->checkpoints[i].at > best->at))
            best = &s->checkpoints[i];
    return best;
}

/* Is all there that a batch at position n would see?  Of a ring, chunks go as later ones come. */
static bool is_held(const struct sequence *s, size_t n)
{
    size_t last = s->high ? (s->high - 1) / OP_KV_CHUNK : 0;

    for (size_t i = 0; i < s->n_layers && n; i++) {
        const struct cache *c = &s->caches[i];
        size_t first = n + 1 > c->window ? (n + 1 - c->window) / OP_KV_CHUNK : 0;

        if (c->window && last >= first + c->k.n[3])
            return false;
    }
    return true;
}

size_t sequence_rewind_point(const struct sequence *s, size_t n)
{
    const struct checkpoint *c;

    if (n >= s->length)
        return s->length;
    if (s->state_bytes) {
        c = checkpoint_before(s, n);
        n = c ? c->at : 0;
    }
    return is_held(s, n) ? n : 0;
}

static char *states_of(const struct sequence *s, const struct checkpoint *c)
{
    return (char *)s->states.data + s->state_bytes * (size_t)(1 + (c - s->checkpoints));
}

/* To the state of a checkpoint, or of the start; later ones tell of a past that is not there. */
static void restore(struct sequence *s, const struct checkpoint *c)
{
    s->length = c ? c->at : 0;
    if (c)
        memcpy(s->states.data, states_of(s, c), s->state_bytes);
    else
        memset(s->states.data, 0, s->state_bytes);
    for (size_t i = 0; i < s->n_checkpoints; i++)
        if (s->checkpoints[i].at > s->length)
            s->checkpoints[i].at = 0;
}

static void go_back(struct sequence *s, size_t n)
{
    if (s->state_bytes)
        restore(s, checkpoint_before(s, n));
    s->length = n;
    if (!n)
        s->high = 0;
}

size_t sequence_truncate(struct sequence *s, size_t n)
{
    if (n < s->length)
        go_back(s, sequence_rewind_point(s, n));
    return s->length;
}

void sequence_spoiled(struct sequence *s, size_t n)
{
    const struct checkpoint *c = checkpoint_before(s, s->length);
    size_t back = c ? c->at : 0;

    s->high = MAX(s->high, MIN(s->length + n, s->n_ctx));
    if (s->state_bytes)
        go_back(s, is_held(s, back) ? back : 0);
}

void sequence_checkpoint(struct sequence *s)
{
    struct checkpoint *to = s->checkpoints;

    if (!s->n_checkpoints || !s->length)
        return;
    for (size_t i = 0; i < s->n_checkpoints; i++) {
        if (s->checkpoints[i].at == s->length)
            return;
        if (to->at && (!s->checkpoints[i].at || s->checkpoints[i].age < to->age))
            to = &s->checkpoints[i]; /* an empty one, else the oldest */
    }
    memcpy(states_of(s, to), s->states.data, s->state_bytes);
    to->at = s->length;
    to->age = ++s->clock;
}

size_t sequence_common(const struct sequence *s, const int32_t *ids, size_t n)
{
    size_t most = MIN(n, s->length);
    size_t i = 0;

    while (i < most && ids[i] == s->ids[i])
        i++;
    return i;
}

void sequence_append(struct sequence *s, const int32_t *ids, size_t n)
{
    assert(n <= s->n_ctx - s->length);
    memcpy(s->ids + s->length, ids, n * sizeof *ids);
    s->length += n;
    s->high = MAX(s->high, s->length);
}

struct tensor sequence_k(const struct sequence *s, size_t layer)
{
    return s->caches[layer].k;
}

struct tensor sequence_v(const struct sequence *s, size_t layer)
{
    return s->caches[layer].v;
}

struct tensor sequence_groups(const struct sequence *s, size_t layer)
{
    return s->caches[layer].groups;
}

struct tensor sequence_index(const struct sequence *s, size_t layer)
{
    return s->caches[layer].index;
}

struct tensor sequence_conv(const struct sequence *s, size_t layer)
{
    return s->caches[layer].conv;
}

struct tensor sequence_state(const struct sequence *s, size_t layer)
{
    return s->caches[layer].state;
}
