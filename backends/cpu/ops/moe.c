/*
 * MOE: the chosen experts of every row, in three regions: gate and up, the
 * gated activation, down and the sum.
 *
 * A pair is (row, rank); pairs are sorted by expert into slots, so that the
 * columns of one expert lie together and its weights are read once.  Groups
 * are runs of at most KERNELS_TILE_COLS slots of one expert.  Outputs are added
 * in rank order, whatever the order of slots, so a row has the same bits alone
 * as in a batch, and with its experts computed one by one (op.h, op_experts).
 */
#include <string.h>

#include "backends/cpu/ops/elementwise.h"
#include "backends/cpu/ops/product.h"
#include "common/alloc.h"

enum { SRC_ACT, SRC_IDS, SRC_WEIGHTS, SRC_GATE, SRC_UP, SRC_DOWN };
enum { SRC_BIAS = 6 }; /* of gate, of up, of down; any may be absent */

/*
 * Who goes where.  Every thread makes its own, which is cheaper than a barrier, and keeps it for
 * all calls where experts come one by one.
 */
struct plan {
    size_t n_pairs;
    uint32_t *first_slot;  /* [n_expert + 1] */
    uint32_t *first_group; /* [n_expert + 1] */
    uint32_t *pair_of;     /* [slot] */
    uint32_t *slot_of;     /* [pair] */
};

/* The pieces of scratch; addresses are the same for all threads but for plan and gemm. */
struct space {
    char *act;       /* [slot] rows of in_act; NULL for one row: its own is read */
    char *packed[2]; /* [group] tiles for gate and for up, which may be the same */
    char *mid_packed;
    char *mid;   /* [slot] rows of mid_act; for ACT_F32 they are gate's */
    float *gate; /* [slot][n_ff] */
    float *up;   /* [slot][up_stride]: n_ff of up, then y, width of it: a slot's are its own */
    size_t up_stride;
    char *gemm;   /* of this thread */
    char *plan;   /* of this thread */
    size_t bytes; /* of all threads */
};

static size_t n_ff(const struct op *op)
{
    return op->src[SRC_GATE].n[1];
}

static enum format_id format(const struct op *op, int src)
{
    return format_id_of(op->src[src].fmt);
}

static size_t most_groups(const struct op *op, size_t pairs)
{
    return pairs / KERNELS_TILE_COLS + MIN((size_t)op->p.moe.n_expert, pairs);
}

static size_t tiles_bytes(const struct op *op, const struct kernels *k, int src, size_t pairs)
{
    if (!product_packs(k, format(op, src), pairs))
        return 0;
    return scratch_round(most_groups(op, pairs) *
                         product_tile_bytes(k, format(op, src), op->src[src].n[0]));
}

static bool up_shares_tiles(const struct op *op, const struct kernels *k)
{
    return k->pack[format(op, SRC_UP)] == k->pack[format(op, SRC_GATE)];
}

static size_t gemm_bytes(const struct op *op, const struct kernels *k, size_t pairs)
{
    size_t most = 0;

    for (int src = SRC_GATE; src <= SRC_DOWN; src++)
        most = MAX(most, product_scratch_bytes(k, format(op, src), op->src[src].n[0], pairs));
    return most;
}

static size_t plan_bytes(const struct op *op, size_t pairs)
{
    return scratch_round((2 * ((size_t)op->p.moe.n_expert + 1) + 2 * pairs) * sizeof(uint32_t));
}

/* base may be NULL when only the size is asked for. */
static struct space lay_out(const struct op *op, const struct kernels *k, void *base, size_t rows,
                            unsigned thread, unsigned n_threads)
{
    size_t pairs = rows * op->p.moe.n_used, width = op->dst[0].n[0], ff = n_ff(op);
    struct space s = {0};
    size_t at = 0;

    s.act =
        rows > 1 ? scratch_take(base, &at, pairs * act_row_bytes(op->p.moe.in_act, width)) : NULL;
    s.packed[0] = scratch_take(base, &at, tiles_bytes(op, k, SRC_GATE, pairs));
    s.packed[1] = up_shares_tiles(op, k)
                      ? s.packed[0]
                      : scratch_take(base, &at, tiles_bytes(op, k, SRC_UP, pairs));
    s.mid_packed = scratch_take(base, &at, tiles_bytes(op, k, SRC_DOWN, pairs));
    s.gate = scratch_take(base, &at, pairs * ff * sizeof(float));
    s.up_stride = MAX(ff, width);
    s.up = scratch_take(base, &at, pairs * s.up_stride * sizeof(float));
    s.mid = (char *)s.gate;
    if (op->p.moe.mid_act != ACT_F32)
        s.mid = scratch_take(base, &at, pairs * act_row_bytes(op->p.moe.mid_act, ff));
    for (unsigned t = 0; t < n_threads; t++) {
        char *gemm = scratch_take(base, &at, gemm_bytes(op, k, pairs));
        char *plan = scratch_take(base, &at, plan_bytes(op, pairs));

        s.gemm = t == thread ? gemm : s.gemm;
        s.plan = t == thread ? plan : s.plan;
    }
    s.bytes = at;
    return s;
}

static size_t scratch_bytes(const struct op *op, const struct kernels *k, unsigned n_threads,
                            size_t rows)
{
    return lay_out(op, k, NULL, rows, 0, n_threads).bytes;
}

static float weight_of(const struct op *op, size_t pair)
{
    size_t n_used = op->p.moe.n_used;

    return tensor_f32(&op->src[SRC_WEIGHTS], pair / n_used)[pair % n_used];
}

static uint32_t expert_of(const struct op *op, size_t pair)
{
    size_t n_used = op->p.moe.n_used;
    const int32_t *ids = tensor_row(&op->src[SRC_IDS], pair / n_used);

    return (uint32_t)ids[pair % n_used];
}

/* Where the pieces of a plan lie; for the calls after the first one, which find it made. */
static struct plan plan_at(const struct op *op, size_t rows, char *at)
{
    size_t n_expert = op->p.moe.n_expert;
    struct plan plan = {.n_pairs = rows * op->p.moe.n_used, .first_slot = (uint32_t *)at};

    plan.first_group = plan.first_slot + n_expert + 1;
    plan.pair_of = plan.first_group + n_expert + 1;
    plan.slot_of = plan.pair_of + plan.n_pairs;
    return plan;
}

static void make_plan(const struct op *op, const struct plan *plan)
{
    size_t n_expert = op->p.moe.n_expert;
    uint32_t *next;

    memset(plan->first_slot, 0, (n_expert + 1) * sizeof(uint32_t));
    for (size_t i = 0; i < plan->n_pairs; i++)
        plan->first_slot[expert_of(op, i) + 1]++;
    for (size_t e = 0; e < n_expert; e++)
        plan->first_slot[e + 1] += plan->first_slot[e];

    /* first_group serves as the cursor of each expert while slots are dealt. */
    next = plan->first_group;
    memcpy(next, plan->first_slot, n_expert * sizeof(uint32_t));
    for (size_t i = 0; i < plan->n_pairs; i++) {
        uint32_t slot = next[expert_of(op, i)]++;

        plan->pair_of[slot] = (uint32_t)i;
        plan->slot_of[i] = slot;
    }
    plan->first_group[0] = 0;
    for (size_t e = 0; e < n_expert; e++)
        plan->first_group[e + 1] =
            plan->first_group[e] +
            (plan->first_slot[e + 1] - plan->first_slot[e] + KERNELS_TILE_COLS - 1) /
                KERNELS_TILE_COLS;
}

static bool is_first(const struct op *op)
{
    return !op->p.moe.experts || op->p.moe.experts->first;
}

static bool is_last(const struct op *op)
{
    return !op->p.moe.experts || op->p.moe.experts->last;
}

/* Is the expert computed in this call? */
static bool is_here(const struct op *op, size_t e)
{
    return !op->p.moe.experts || op->p.moe.experts->data[e][0];
}

/* Calls fn for this thread's share of the groups. */
typedef void group_fn(const struct op *op, const struct part *p, const struct plan *plan,
                      const struct space *s, size_t group, size_t slot, size_t n, size_t of_expert);

static void each_group(const struct op *op, const struct part *p, const struct plan *plan,
                       const struct space *s, group_fn *fn)
{
    size_t from, to;

    team_share(plan->first_group[op->p.moe.n_expert], 1, p->thread, p->n_threads, &from, &to);
    for (size_t e = 0; e < op->p.moe.n_expert; e++) {
        size_t end = plan->first_slot[e + 1];

        for (size_t g = plan->first_group[e]; g < plan->first_group[e + 1]; g++) {
            size_t slot = plan->first_slot[e] + (g - plan->first_group[e]) * KERNELS_TILE_COLS;

            if (g >= from && g < to)
                fn(op, p, plan, s, g, slot, MIN((size_t)KERNELS_TILE_COLS, end - slot),
                   end - plan->first_slot[e]);
        }
    }
}

static void pack_group(const struct op *op, const struct kernels *k, int src, const char *act,
                       size_t act_stride, size_t n_cols, size_t group, char *packed)
{
    size_t n = op->src[src].n[0];
    struct pack pack = {
        .act = act,
        .act_stride = act_stride,
        .n = n,
        .cols = n_cols,
        .out = packed + group * product_tile_bytes(k, format(op, src), n),
    };

    k->pack[format(op, src)](&pack);
}

/* Brings the rows of a group together, and packs them where the weights read tiles. */
static void gather(const struct op *op, const struct part *p, const struct plan *plan,
                   const struct space *s, size_t group, size_t slot, size_t n, size_t of_expert)
{
    size_t bytes = act_row_bytes(op->p.moe.in_act, op->dst[0].n[0]);

    for (size_t i = slot; i < slot + n; i++)
        memcpy(s->act + i * bytes,
               tensor_row(&op->src[SRC_ACT], plan->pair_of[i] / op->p.moe.n_used), bytes);
    for (int w = 0; w < 2; w++)
        if (product_packs(p->k, format(op, SRC_GATE + w), of_expert) &&
            (w == 0 || !up_shares_tiles(op, p->k)))
            pack_group(op, p->k, SRC_GATE + w, s->act + slot * bytes, bytes, n, group,
                       s->packed[w]);
}

/* y += elements [from, to) of what expert e has in a bias, where there is one. */
static void add_bias(const struct op *op, const struct part *p, int src, size_t e, float *y,
                     size_t from, size_t to)
{
    const struct tensor *bias = &op->src[SRC_BIAS + src - SRC_GATE];

    if (bias->fmt)
        p->k->add(y, tensor_f32(bias, e) + from, y, to - from);
}

/* act(gate) * up, as the activations of down. */
static void activate(const struct op *op, const struct part *p, const struct plan *plan,
                     const struct space *s, size_t group, size_t slot, size_t n, size_t of_expert)
{
    enum act_kind act = op->p.moe.mid_act;
    size_t ff = n_ff(op), bytes = act_row_bytes(act, ff);
    size_t e = expert_of(op, plan->pair_of[slot]);

    if (!is_here(op, e))
        return;
    for (size_t i = slot; i < slot + n; i++) {
        float *gate = s->gate + i * ff, *up = s->up + i * s->up_stride;

        add_bias(op, p, SRC_GATE, e, gate, 0, ff);
        if (!op->p.moe.alone)
            add_bias(op, p, SRC_UP, e, up, 0, ff);
        if (op->p.moe.weigh_first) {
            float weight = weight_of(op, plan->pair_of[i]);

            p->k->scale(gate, weight, gate, ff);
            if (!op->p.moe.alone)
                p->k->scale(up, weight, up, ff);
        }
        glu_row(p->k, op->p.moe.act, op->p.moe.limit, gate, op->p.moe.alone ? NULL : up, gate, ff);
        if (act != ACT_F32)
            p->k->quantize[act](gate, ff, s->mid + i * bytes);
    }
    if (product_packs(p->k, format(op, SRC_DOWN), of_expert))
        pack_group(op, p->k, SRC_DOWN, s->mid + slot * bytes, bytes, n, group, s->mid_packed);
}

/* One of the three matrices of every expert that has slots: this thread's rows of it. */
static void multiply(const struct op *op, const struct part *p, const struct plan *plan,
                     const struct space *s, int src, const struct product *shape)
{
    const struct op_experts *experts = op->p.moe.experts;
    struct tensor w = op->src[src];
    size_t from, to;

    product_share(p, w.n[1], &from, &to);
    for (size_t e = 0; e < op->p.moe.n_expert; e++) {
        size_t slot = plan->first_slot[e];
        struct product prod = *shape;

        prod.w = &w;
        prod.w_offset = experts ? 0 : e * w.stride[2];
        prod.cols = plan->first_slot[e + 1] - slot;
        if (!prod.cols || !is_here(op, e))
            continue;
        if (experts)
            w.data = (void *)(uintptr_t)experts->data[e][src - SRC_GATE];
        prod.act = (const char *)shape->act + slot * shape->act_stride;
        if (product_packs(p->k, format(op, src), prod.cols))
            prod.packed = (const char *)shape->packed +
                          plan->first_group[e] * product_tile_bytes(p->k, format(op, src), w.n[0]);
        prod.y = shape->y + slot * shape->y_stride;
        product_rows(&prod, p->k, from, to, s->gemm);
    }
}

/* dst = Σ weight * y, best expert first; each thread sums the elements that it has computed. */
static void sum_ranks(const struct op *op, const struct part *p, const struct plan *plan,
                      const struct space *s)
{
    size_t width = op->dst[0].n[0], n_used = op->p.moe.n_used;
    size_t from, to;

    product_share(p, width, &from, &to);
    for (size_t pair = 0; pair < plan->n_pairs && from < to; pair++) {
        float *y = s->up + plan->slot_of[pair] * s->up_stride + from;
        float *out = tensor_f32(&op->dst[0], pair / n_used) + from;
        float weight = op->p.moe.weigh_first ? 1.0f : weight_of(op, pair);

        add_bias(op, p, SRC_DOWN, expert_of(op, pair), y, from, to);
        if (pair % n_used == 0) {
            p->k->scale(y, weight, out, to - from);
            continue;
        }
        p->k->scale(y, weight, y, to - from);
        p->k->add(out, y, out, to - from);
    }
}

static void run(const struct op *op, const struct part *p)
{
    struct space s = lay_out(op, p->k, p->scratch, p->rows, p->thread, p->n_threads);
    struct plan plan = plan_at(op, p->rows, s.plan);
    size_t ff = n_ff(op), width = op->dst[0].n[0];
    struct product in = {
        .act = s.act ? s.act : op->src[SRC_ACT].data,
        /* A single row has no gathered copies: all its experts read the same one. */
        .act_stride = s.act ? act_row_bytes(op->p.moe.in_act, width) : 0,
    };
    struct product mid = {
        .act = s.mid,
        .act_stride = act_row_bytes(op->p.moe.mid_act, ff),
        .packed = s.mid_packed,
        .y = s.up,
        .y_stride = s.up_stride,
    };

    if (is_first(op))
        make_plan(op, &plan);
    if (s.act && is_first(op)) {
        each_group(op, p, &plan, &s, gather);
        team_barrier(p->team);
    }
    for (int w = 0; w < (op->p.moe.alone ? 1 : 2); w++) {
        in.packed = s.packed[w];
        in.y = w ? s.up : s.gate;
        in.y_stride = w ? s.up_stride : ff;
        multiply(op, p, &plan, &s, SRC_GATE + w, &in);
    }
    team_barrier(p->team);
    each_group(op, p, &plan, &s, activate);
    team_barrier(p->team);
    multiply(op, p, &plan, &s, SRC_DOWN, &mid);
    if (is_last(op))
        sum_ranks(op, p, &plan, &s);
}

static bool can(const struct op *op, const struct kernels *k)
{
    for (int src = SRC_GATE; src <= SRC_DOWN; src++)
        if (!k->matvec[format(op, src)])
            return false;
    return true;
}

const struct driver driver_MOE = {.run = run, .scratch_bytes = scratch_bytes, .can = can};
