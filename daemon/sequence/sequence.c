/* KV caches of all layers in one region, and the ids they hold.  See sequence.h. */

#include "daemon/sequence/sequence.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/thread.h"

#define CACHE_ALIGN 64

struct cache {
    struct tensor k, v, index; /* fmt NULL: the layer keeps nothing */
};

struct sequence {
    struct ledger *ledger;
    const struct backend_ops *ops;
    struct backend *be;
    struct cache *caches; /* [n_layers] */
    size_t n_layers;
    struct region region;
    int32_t *ids; /* [n_ctx] */
    size_t n_ctx;
    size_t length;
    size_t charged;
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

static size_t n_chunks(const struct sequence_layout *l)
{
    return l->n_ctx / OP_KV_CHUNK + (l->n_ctx % OP_KV_CHUNK != 0);
}

/* Bytes of the keys, or of the values, of one layer. */
static size_t cache_bytes(const struct sequence_layout *l, const struct format *fmt, unsigned heads,
                          unsigned dim)
{
    size_t row = format_row_bytes(fmt, dim);
    size_t bytes = mul_sat(mul_sat(row * OP_KV_CHUNK, heads), n_chunks(l));

    return add_sat(bytes, CACHE_ALIGN - 1) / CACHE_ALIGN * CACHE_ALIGN;
}

static size_t region_bytes(const struct sequence_layout *l)
{
    size_t sum = 0;

    for (size_t i = 0; i < l->n_layers; i++) {
        const struct sequence_layer *y = &l->layers[i];

        if (!y->n_kv_heads)
            continue;
        sum = add_sat(sum, cache_bytes(l, l->k_fmt, y->n_kv_heads, y->k_dim));
        if (!y->v_in_k)
            sum = add_sat(sum, cache_bytes(l, l->v_fmt, y->n_kv_heads, y->v_dim));
        if (y->index_dim)
            sum = add_sat(sum, cache_bytes(l, l->k_fmt, 1, y->index_dim));
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

    return tensor_make(l->k_fmt, NULL, y->k_dim, OP_KV_CHUNK, y->n_kv_heads, n_chunks(l));
}

struct tensor sequence_shape_v(const struct sequence_layout *l, size_t layer)
{
    const struct sequence_layer *y = &l->layers[layer];
    struct tensor v;

    if (!y->v_in_k)
        return tensor_make(l->v_fmt, NULL, y->v_dim, OP_KV_CHUNK, y->n_kv_heads, n_chunks(l));
    v = sequence_shape_k(l, layer);
    v.n[0] = y->v_dim;
    return v;
}

struct tensor sequence_shape_index(const struct sequence_layout *l, size_t layer)
{
    return tensor_make(l->k_fmt, NULL, l->layers[layer].index_dim, OP_KV_CHUNK, 1, n_chunks(l));
}

static void cut_caches(struct sequence *s, const struct sequence_layout *l)
{
    char *at = s->region.data;

    for (size_t i = 0; i < l->n_layers; i++) {
        const struct sequence_layer *y = &l->layers[i];
        struct cache *c = &s->caches[i];

        if (!y->n_kv_heads)
            continue;
        c->k = sequence_shape_k(l, i);
        c->v = sequence_shape_v(l, i);
        c->k.data = c->v.data = at;
        at += cache_bytes(l, l->k_fmt, y->n_kv_heads, y->k_dim);
        if (!y->v_in_k) {
            c->v.data = at;
            at += cache_bytes(l, l->v_fmt, y->n_kv_heads, y->v_dim);
        }
        if (y->index_dim) {
            c->index = sequence_shape_index(l, i);
            c->index.data = at;
            at += cache_bytes(l, l->k_fmt, 1, y->index_dim);
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

int sequence_create(const struct sequence_layout *layout, struct ledger *l,
                    const struct backend_ops *ops, struct backend *be, const char *who,
                    struct sequence **ret, struct err *err)
{
    size_t bytes = sequence_bytes(layout, ops, be);
    struct sequence *s;
    int r;

    thread_assert(THREAD_ENGINE);
    r = check_layout(layout, err);
    if (r >= 0)
        r = ledger_reserve(l, POOL_RAM, ACCOUNT_KV, bytes, who, err);
    if (r < 0)
        return r;
    s = XNEW(struct sequence);
    s->ledger = l;
    s->ops = ops;
    s->be = be;
    s->charged = bytes;
    s->n_ctx = layout->n_ctx;
    s->n_layers = layout->n_layers;
    s->caches = XNEW_ARRAY(struct cache, MAX(layout->n_layers, 1));
    s->ids = alloc_pages(MAX(layout->n_ctx, 1) * sizeof(int32_t), 0);
    if (!s->ids) {
        r = err_set(err, ERR_NOMEM, "the kernel has no memory for the ids of %zu positions",
                    s->n_ctx);
        goto out;
    }
    if (region_bytes(layout))
        r = ops->alloc(be, region_bytes(layout), &s->region, err);
    if (r < 0)
        goto out;
    cut_caches(s, layout);
    *ret = s;
    s = NULL;
out:
    sequence_destroy(s);
    return r < 0 ? r : 0;
}

void sequence_destroy(struct sequence *s)
{
    if (!s)
        return;
    if (s->region.data)
        s->ops->free(s->be, &s->region);
    if (s->ids)
        free_pages(s->ids, MAX(s->n_ctx, 1) * sizeof(int32_t));
    ledger_release(s->ledger, POOL_RAM, ACCOUNT_KV, s->charged);
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

void sequence_truncate(struct sequence *s, size_t n)
{
    if (n < s->length)
        s->length = n;
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
}

struct tensor sequence_k(const struct sequence *s, size_t layer)
{
    return s->caches[layer].k;
}

struct tensor sequence_v(const struct sequence *s, size_t layer)
{
    return s->caches[layer].v;
}

struct tensor sequence_index(const struct sequence *s, size_t layer)
{
    return s->caches[layer].index;
}
