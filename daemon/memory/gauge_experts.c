/*
 * Experts of a layer, measured as one operation.  See gauge.h.
 *
 * Not of as many experts as the layer has, which need not fit: of twice as many
 * as a row chooses, so that rows are shared out unevenly as a router does it,
 * and over several such operations, so that weights come from memory.  Where
 * not even those fit, the part between is made narrower.
 */
#include <string.h>

#include "backends/formats/act.h"
#include "common/alloc.h"
#include "daemon/memory/gauge_priv.h"

#define FF_BLOCK  ((size_t)256) /* whole blocks of any format */
#define ROW_ALIGN ((size_t)64)

enum { IN, IDS, WEIGHTS, GATE, UP, DOWN }; /* src of a MOE */

static const double rows_each[GAUGE_POINTS] = {1, 8, 32, 128};

bool gauge_mixture_same(const struct gauge_mixture *a, const struct gauge_mixture *b)
{
    return memcmp(a->formats, b->formats, sizeof a->formats) == 0 && a->width == b->width &&
           a->ff == b->ff && a->n_experts == b->n_experts && a->n_used == b->n_used &&
           a->act == b->act && a->alone == b->alone;
}

const struct gauge_experts *gauge_find(const struct gauge *g, const struct gauge_mixture *m)
{
    for (size_t i = 0; i < g->n_mixtures; i++)
        if (gauge_mixture_same(&g->experts[i].mixture, m))
            return &g->experts[i];
    return NULL;
}

void gauge_add(struct gauge *g, const struct gauge_experts *e)
{
    if (g->n_mixtures == GAUGE_MIXTURES) {
        memmove(g->experts, g->experts + 1, (GAUGE_MIXTURES - 1) * sizeof *g->experts);
        g->n_mixtures--;
    }
    g->experts[g->n_mixtures++] = *e;
}

/* -- an operation of some experts ------------------------------------------------------------ */

static size_t slice_bytes(const struct gauge_mixture *m, int part)
{
    bool down = part == 2;

    return format_row_bytes(format_of(m->formats[part]), down ? m->ff : m->width) *
           (down ? m->width : m->ff);
}

static size_t expert_bytes(const struct gauge_mixture *m)
{
    return slice_bytes(m, 0) + (m->alone ? 0 : slice_bytes(m, 1)) + slice_bytes(m, 2);
}

static size_t op_bytes(const struct gauge_mixture *m)
{
    return alloc_page_round(m->n_experts * expert_bytes(m));
}

/* So many that a few operations of them fit; ret->ff may be less than what it stands for. */
static void shrink(const struct gauge_bench *b, const struct gauge_mixture *m, unsigned n_experts,
                   struct gauge_mixture *ret)
{
    *ret = *m;
    ret->n_experts = MIN(n_experts, m->n_experts);
    while (op_bytes(ret) > b->weights_bytes / 2 && ret->n_experts > ret->n_used)
        ret->n_experts--;
    while (op_bytes(ret) > b->weights_bytes / 2 && ret->ff >= 2 * FF_BLOCK)
        ret->ff = ret->ff / 2 / FF_BLOCK * FF_BLOCK;
}

static struct tensor slices(const struct gauge_mixture *m, int part, char *at)
{
    bool down = part == 2;

    return tensor_make(format_of(m->formats[part]), at, down ? m->ff : m->width,
                       down ? m->width : m->ff, m->n_experts, 1);
}

/* The rows of the operation one behind the other; returns the bytes that they take. */
static size_t lay_rows(struct op *op, const struct gauge_mixture *m, char *at, size_t rows)
{
    const struct format *f32 = format_of(FORMAT_f32);
    size_t act = act_row_bytes(op->p.moe.in_act, m->width), used = 0;

#define TAKE(bytes) (used += ((bytes) + ROW_ALIGN - 1) / ROW_ALIGN * ROW_ALIGN)
    op->src[IN] = tensor_make(f32, at, m->width, rows, 1, 1);
    op->src[IN].stride[1] = act;
    TAKE(rows * act);
    op->src[IDS] = tensor_make(f32, at + used, m->n_used, rows, 1, 1);
    TAKE(rows * m->n_used * sizeof(int32_t));
    op->src[WEIGHTS] = tensor_make(f32, at + used, m->n_used, rows, 1, 1);
    TAKE(rows * m->n_used * sizeof(float));
    op->dst[0] = tensor_make(f32, at + used, m->width, rows, 1, 1);
    TAKE(rows * m->width * sizeof(float));
#undef TAKE
    return used;
}

static struct op experts_op(const struct gauge_bench *b, const struct gauge_mixture *m, size_t at,
                            size_t rows)
{
    struct op op = {.kind = OP_MOE};
    char *w = b->weights + at;

    op.p.moe.n_expert = m->n_experts;
    op.p.moe.n_used = m->n_used;
    op.p.moe.act = m->act;
    op.p.moe.alone = m->alone;
    op.p.moe.in_act = format_of(m->formats[0])->act;
    op.p.moe.mid_act = format_of(m->formats[2])->act;
    lay_rows(&op, m, b->rows, rows);
    op.src[GATE] = slices(m, 0, w);
    op.src[UP] = m->alone ? op.src[GATE] : slices(m, 1, w + m->n_experts * slice_bytes(m, 0));
    op.src[DOWN] = slices(m, 2, w + m->n_experts * (expert_bytes(m) - slice_bytes(m, 2)));
    return op;
}

/* Different experts for each row, by chance, the same each time. */
static void choose(const struct op *op, const struct gauge_mixture *m, size_t rows)
{
    uint32_t all[OP_MAX_EXPERTS], state = 1;

    for (unsigned e = 0; e < m->n_experts; e++)
        all[e] = e;
    for (size_t row = 0; row < rows; row++) {
        int32_t *ids = tensor_row(&op->src[IDS], row);

        for (unsigned k = 0; k < m->n_used; k++) {
            unsigned with;
            uint32_t e;

            state = state * 1664525 + 1013904223; /* Numerical Recipes' generator */
            with = k + (state >> 16) % (m->n_experts - k);
            e = all[with];
            all[with] = all[k];
            all[k] = e;
            ids[k] = (int32_t)e;
        }
    }
}

/* As many rows as that, or as there is room for; 0: none, or the backend cannot compute it. */
static size_t rows_that_fit(const struct gauge_bench *b, const struct gauge_mixture *m, size_t rows)
{
    for (rows = MIN(rows, GAUGE_ROWS_MAX); rows; rows /= 2) {
        struct op op = experts_op(b, m, 0, rows);

        if (lay_rows(&op, m, b->rows, rows) <= b->rows_bytes && b->ops->can(b->be, &op) &&
            b->ops->scratch_bytes(b->be, &op, rows) <= b->scratch_bytes)
            return rows;
    }
    return 0;
}

/* One point: ret_rows of it may be fewer than each, where there's no room for so many. */
static int measure_point(const struct gauge_bench *b, const struct gauge_mixture *m, double each,
                         double *ret_rows, double *ret_s, struct err *err)
{
    bool one = each <= 1; /* a row: those that it chooses, and no others */
    struct op *ops = b->list;
    struct gauge_mixture some;
    size_t most, rows;
    double s = 0;
    int r;

    shrink(b, m, one ? m->n_used : 2 * m->n_used, &some);
    most = MIN(b->weights_bytes / op_bytes(&some), GAUGE_OPS_MAX);
    rows = one ? 1 : (size_t)(each * some.n_experts / some.n_used);
    rows = most ? rows_that_fit(b, &some, rows) : 0;
    *ret_rows = 0;
    if (!rows)
        return 0;
    for (size_t i = 0; i < most; i++)
        ops[i] = experts_op(b, &some, i * op_bytes(&some), rows);
    choose(&ops[0], &some, rows);
    r = gauge_time_ops(b, ops, most, one ? MIN(most, (size_t)4) : 1, rows, 0, &s, err);
    *ret_rows = (double)(rows * some.n_used) / some.n_experts;
    *ret_s = s / some.n_experts * ((double)m->ff / (double)some.ff);
    return r;
}

int gauge_measure_mixture(struct gauge *g, const struct gauge_bench *b,
                          const struct gauge_mixture *m, struct err *err)
{
    struct gauge_experts e = {.mixture = *m};

    for (int p = 0; p < GAUGE_POINTS; p++) {
        int r = measure_point(b, m, rows_each[p], &e.rows[p], &e.seconds[p], err);

        if (r < 0)
            return r;
        if (e.rows[p] <= 0)
            return 0;
        /* where there was no room for more than before, it is the same again */
        if (p && e.rows[p] <= e.rows[p - 1]) {
            e.rows[p] = e.rows[p - 1];
            e.seconds[p] = e.seconds[p - 1];
        }
    }
    gauge_add(g, &e);
    return 0;
}

double gauge_expert_seconds(const struct gauge *g, const struct gauge_mixture *m, double rows)
{
    const struct gauge_experts *e = gauge_find(g, m);
    const double *n, *s;
    int p;

    if (!e)
        return 0;
    n = e->rows;
    s = e->seconds;
    for (p = 0; p < GAUGE_POINTS - 1; p++)
        if (rows <= n[p + 1] && n[p + 1] > n[p])
            return s[p] + (s[p + 1] - s[p]) * (MAX(rows, n[p]) - n[p]) / (n[p + 1] - n[p]);
    return s[p] * rows / n[p];
}
