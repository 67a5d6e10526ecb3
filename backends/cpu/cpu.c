/*
 * The CPU as a backend: memory, what it can run, and the walk of the team over
 * a program; see backend.h and cpu.h.
 */
#include "backends/cpu/cpu.h"

#include <stdio.h>
#include <stdlib.h>

#include "backends/cpu/cpuid.h"
#include "common/alloc.h"

_Static_assert(KERNELS_CHUNK == OP_KV_CHUNK, "the kernels' chunk is the caches' chunk");

extern const struct backend_ops backend_cpu;

#define HUGE_BYTES ((size_t)2 << 20)

struct backend {
    struct kernels kernels;
    struct team *team;
    unsigned tiers;
};

static const struct driver *const drivers[OP_COUNT] = {
#define OP(name, n_src, help) [OP_##name] = &driver_##name,
#include "backends/ops.def"
#undef OP
};

static void describe(unsigned tiers, unsigned threads, struct device *ret_dev)
{
    snprintf(ret_dev->name, sizeof(ret_dev->name), "cpu");
    snprintf(ret_dev->detail, sizeof(ret_dev->detail), "%s, %u thread%s", cpu_tier_name(tiers),
             threads, threads == 1 ? "" : "s");
    ret_dev->memory_bytes = 0;
    ret_dev->threads = threads;
}

static int cpu_probe(struct device *ret_list, int cap, struct err *err)
{
    (void)err;
    if (cap < 1)
        return 0;
    ret_list[0].ops = &backend_cpu;
    describe(cpu_tiers(), cpu_default_threads(), &ret_list[0]);
    return 1;
}

static void cpu_close(struct backend *be)
{
    if (!be)
        return;
    team_destroy(be->team);
    free(be);
}

static int cpu_open(const struct device *dev, const struct backend_options *opt,
                    struct backend **ret_be, struct err *err)
{
    const char *cap = opt->cpu ? opt->cpu : "auto";
    struct backend *be = XNEW(struct backend);
    int r;

    (void)dev;
    be->tiers = cpu_tiers_cap(cpu_tiers(), cap);
    if (!be->tiers) {
        r = err_set_param(err, ERR_INVALID, "cpu",
                          "cpu = \"%s\" is no tier of this build; give auto, scalar or one that "
                          "`rnbd --help` names",
                          cap);
        goto out;
    }
    kernels_select(&be->kernels, be->tiers);
    r = team_create(opt->threads ? opt->threads : cpu_default_threads(), &be->team, err);
    if (r < 0)
        goto out;
    *ret_be = be;
    be = NULL;
out:
    cpu_close(be);
    return r;
}

static size_t cpu_alloc_bytes(const struct backend *be, size_t bytes)
{
    (void)be;
    return alloc_page_round(bytes);
}

static int cpu_alloc(struct backend *be, size_t bytes, struct region *ret_region, struct err *err)
{
    void *p = alloc_pages(bytes, bytes >= HUGE_BYTES);

    if (!p)
        return err_set(err, ERR_NOMEM,
                       "the system has no %zu bytes of memory left; lower the "
                       "context or unload a model",
                       bytes);
    *ret_region = (struct region){.data = p, .bytes = cpu_alloc_bytes(be, bytes)};
    return 0;
}

static void cpu_free(struct backend *be, struct region *r)
{
    (void)be;
    if (r->data)
        free_pages(r->data, r->bytes);
    *r = (struct region){0};
}

static bool cpu_can(const struct backend *be, const struct op *op)
{
    const struct driver *d;

    if (op_check(op, NULL) < 0)
        return false;
    d = drivers[op->kind];
    return !d->can || d->can(op, &be->kernels);
}

static size_t cpu_scratch_bytes(const struct backend *be, const struct op *op, size_t rows)
{
    const struct driver *d = drivers[op->kind];

    return d->scratch_bytes && rows
               ? d->scratch_bytes(op, &be->kernels, team_threads(be->team), rows)
               : 0;
}

/* -- what the batch asks for ------------------------------------------------------ */

static int check_ids(const int32_t *ids, size_t n, size_t end, const char *what, struct err *err)
{
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (size_t)ids[i] >= end)
            return err_set(err, ERR_INVALID, "%s %d is not below %zu; it cannot be looked up", what,
                           ids[i], end);
    return 0;
}

static int check_positions(const struct op_run *run, size_t end, struct err *err)
{
    if (run->pos <= end && run->rows <= end - run->pos)
        return 0;
    return err_set(err, ERR_INVALID,
                   "positions up to %zu cannot be looked up; the model has %zu of them",
                   run->pos + run->rows, end);
}

/* Chunks that a batch stores or sees, of a window or all, must be in the cache at once. */
static int fits_cache(const struct op *op, int src, const struct op_run *run, size_t window,
                      size_t group, struct err *err)
{
    const struct tensor *k = &op->src[src];
    size_t first = window && run->pos + 1 > window ? (run->pos + 1 - window) / OP_KV_CHUNK : 0;
    size_t n = (run->pos + run->rows) / MAX(group, (size_t)1);

    if (!n || (n - 1) / OP_KV_CHUNK - first < k->n[3])
        return 0;
    return err_set(err, ERR_INTERNAL,
                   "positions up to %zu do not fit the cache of layer %d, which has %zu",
                   run->pos + run->rows, op->layer, k->n[3] * OP_KV_CHUNK);
}

static int check_cache(const struct op *op, const struct op_run *run, struct err *err)
{
    int r;

    switch (op->kind) {
    case OP_KV_STORE: return fits_cache(op, 2, run, 1, 1, err);
    case OP_ATTENTION: return fits_cache(op, 1, run, op->p.attention.window, 1, err);
    case OP_SPARSE: return fits_cache(op, 1, run, 0, 1, err);
    case OP_INDEXER: return fits_cache(op, 2, run, 0, op->p.indexer.group, err);
    case OP_COMPRESS: return fits_cache(op, 5, run, 0, op->p.compress.group, err);
    case OP_NEAR_FAR:
        r = fits_cache(op, 1, run, op->p.attention.window, 1, err);
        return r < 0 ? r : fits_cache(op, 2, run, 0, op->p.attention.group, err);
    default: return 0;
    }
}

static int check_batch(const struct op *ops, size_t n, const struct op_run *run, struct err *err)
{
    size_t rows = run->rows;
    int r = 0;

    for (size_t i = 0; i < n && rows && r >= 0; i++) {
        const struct op *op = &ops[i];

        if (op->kind == OP_EMBED && op->p.embed.by == OP_EMBED_POSITION)
            r = check_positions(run, op->src[0].n[1], err);
        else if (op->kind == OP_EMBED && op->p.embed.by == OP_EMBED_TOKEN)
            r = check_ids(run->tokens, rows, op->src[0].n[1], "token", err);
        else if (op->kind == OP_ROUTER && op->src[3].fmt)
            r = check_ids(run->tokens, run->rows, op->src[3].n[1], "token", err);
        else if (op->kind == OP_ROWS)
            r = check_ids(run->rows_out, run->n_out, op->src[0].n[1], "row", err);
        else
            r = check_cache(op, run, err);
        if (op->kind == OP_ROWS)
            rows = run->n_out;
        if (r >= 0 && op->dst[0].fmt && rows > tensor_rows(&op->dst[0]))
            r = err_set(err, ERR_INTERNAL, "op %s of layer %d is bound for %zu rows, not %zu",
                        op_name(op->kind), op->layer, tensor_rows(&op->dst[0]), rows);
    }
    return r;
}

/* -- the walk ----------------------------------------------------------------------- */

struct program {
    const struct backend *be;
    const struct op *ops;
    size_t n;
    const struct op_run *run;
    void *scratch;
};

/* Do they lie on each other, other than row on row? */
static bool collide(const struct tensor *a, const struct tensor *b)
{
    const char *pa = a->data, *pb = b->data;

    if (!a->fmt || !b->fmt || (pa == pb && a->stride[1] == b->stride[1]))
        return false;
    return pa < pb + tensor_bytes(b) && pb < pa + tensor_bytes(a);
}

/* Does an output of a touch anything of b but the thread's own rows? */
static bool disturbs(const struct op *a, const struct op *b)
{
    for (int i = 0; i < OP_MAX_DST; i++) {
        for (int j = 0; j < OP_MAX_DST; j++)
            if (collide(&a->dst[i], &b->dst[j]))
                return true;
        for (int j = 0; j < OP_MAX_SRC; j++)
            if (collide(&a->dst[i], &b->src[j]))
                return true;
    }
    return false;
}

/*
 * Must all threads have left the ops [open, at) before any enters `at`?  Not
 * between drivers that keep to the thread's own rows, unless their buffers
 * overlap with rows of another width.
 */
static bool needs_barrier(const struct op *ops, size_t open, size_t at, size_t rows)
{
    if (at == open)
        return false;
    if (!drivers[ops[at].kind]->by_row || !drivers[ops[at - 1].kind]->by_row)
        return true;
    for (size_t i = open; i < at && rows > 1; i++)
        if (disturbs(&ops[at], &ops[i]) || disturbs(&ops[i], &ops[at]))
            return true;
    return false;
}

static void walk(void *arg, unsigned thread)
{
    const struct program *prog = arg;
    size_t open = 0;
    struct part p = {
        .k = &prog->be->kernels,
        .team = prog->be->team,
        .thread = thread,
        .n_threads = team_threads(prog->be->team),
        .run = prog->run,
        .rows = prog->run->rows,
        .scratch = prog->scratch,
    };

    for (size_t i = 0; i < prog->n; i++) {
        const struct op *op = &prog->ops[i];

        if (op->kind == OP_ROWS)
            p.rows = prog->run->n_out;
        if (!p.rows)
            return;
        if (needs_barrier(prog->ops, open, i, p.rows)) {
            team_barrier(p.team);
            open = i;
        }
        drivers[op->kind]->run(op, &p);
    }
}

static int cpu_run(struct backend *be, const struct op *ops, size_t n, const struct op_run *run,
                   void *scratch, struct err *err)
{
    struct program prog = {.be = be, .ops = ops, .n = n, .run = run, .scratch = scratch};
    int r = check_batch(ops, n, run, err);

    if (r < 0)
        return r;
    team_run(be->team, walk, &prog);
    return 0;
}

static void cpu_describe(const struct backend *be, struct device *ret_dev)
{
    describe(be->tiers, team_threads(be->team), ret_dev);
}

const struct backend_ops backend_cpu = {
    .name = "cpu",
    .probe = cpu_probe,
    .open = cpu_open,
    .close = cpu_close,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .alloc_bytes = cpu_alloc_bytes,
    .can = cpu_can,
    .scratch_bytes = cpu_scratch_bytes,
    .run = cpu_run,
    .describe = cpu_describe,
};
