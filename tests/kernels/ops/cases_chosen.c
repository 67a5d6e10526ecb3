/* Beds of the ops that choose positions, and attend to the chosen ones. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/ops/caches.h"

#define CHECK(b) ((*ret_run)++, bed_check(&(b)))
#define MAX_DIM  256

static const char *const cache_formats[] = {"f32", "f16", "q8_0", "q4_0"};

/* -- INDEXER ---------------------------------------------------------------------------- */

static double score(const struct bed *b, size_t r, size_t p)
{
    size_t dim = b->op.p.indexer.head_dim;
    float key[MAX_DIM];
    double sum = 0;

    b->op.src[2].fmt->to_f32(bed_slot(&b->op.src[2], 0, p), key, dim);
    for (size_t h = 0; h < b->op.p.indexer.n_heads; h++) {
        double s = 0;

        for (size_t d = 0; d < dim; d++)
            s += bed_src(b, 0, r, h * dim + d) * (double)key[d];
        if (s > 0)
            sum += s * bed_src(b, 1, r, h) * (double)b->op.p.indexer.scale;
    }
    return sum;
}

static size_t seen_by(const struct bed *b, size_t r)
{
    size_t group = b->op.p.indexer.group;

    return (b->run.pos + r + 1) / (group ? group : 1);
}

struct scored {
    double score;
    int32_t pos;
};

static int best_first(const void *a, const void *b)
{
    const struct scored *x = a, *y = b;

    return x->score > y->score   ? -1
           : x->score < y->score ? 1
                                 : (x->pos > y->pos) - (x->pos < y->pos);
}

static int by_position(const void *a, const void *b)
{
    const struct scored *x = a, *y = b;

    return (x->pos > y->pos) - (x->pos < y->pos);
}

/* The lists of all rows, made once: int32 in the slots of truth. */
static void make_lists(struct bed *b, size_t top_k)
{
    int32_t *lists = bed_alloc(b, b->run.rows * top_k * sizeof(*lists));
    size_t most = b->run.pos + b->run.rows;
    struct scored *all = calloc(most, sizeof(*all));

    for (size_t r = 0; r < b->run.rows && all; r++) {
        size_t n = seen_by(b, r);

        for (size_t p = 0; p < n; p++)
            all[p] = (struct scored){n > top_k ? score(b, r, p) : 0, (int32_t)p};
        qsort(all, n, sizeof(*all), best_first);
        qsort(all, n < top_k ? n : top_k, sizeof(*all), by_position);
        for (size_t i = 0; i < n && i < top_k; i++)
            lists[r * top_k + i] = all[i].pos;
    }
    free(all);
    b->truth = (double *)(void *)lists;
}

/* Positions are compared as the bits that they are; behind a short list is anything. */
static double want_list(const struct bed *b, int o, size_t r, size_t i)
{
    const int32_t *lists = (const int32_t *)(const void *)b->truth;
    size_t top_k = b->op.dst[0].n[0];
    int32_t pos = i < seen_by(b, r) ? lists[r * top_k + i] : 0;
    float bits;

    (void)o;
    memcpy(&bits, &pos, sizeof(bits));
    return (double)bits;
}

/* Nothing below zero: else many scores are exactly 0, and equals are for another test. */
static void make_positive(struct bed *b)
{
    size_t n = b->op.src[0].n[0] * b->run.rows, dim = b->op.p.indexer.head_dim;
    float *q = b->op.src[0].data, key[MAX_DIM];

    for (size_t i = 0; i < n; i++)
        q[i] = fabsf(q[i]);
    for (size_t p = 0; p < b->run.pos + b->run.rows; p++) {
        for (size_t d = 0; d < dim; d++)
            key[d] = fabsf(bed_normal());
        b->op.src[2].fmt->from_f32(key, bed_slot(&b->op.src[2], 0, p), dim);
    }
}

static struct bed indexer_bed(const char *fmt, size_t pos, size_t rows, size_t top_k, size_t heads,
                              size_t dim)
{
    struct bed b = {.op = {.kind = OP_INDEXER}, .nmse = 0, .want = want_list, .row_src = 3};
    size_t end = pos + rows;

    snprintf(b.what, sizeof(b.what), "%s, %zu of %zu, %zu rows", fmt, top_k, pos, rows);
    b.op.p.indexer.n_heads = (unsigned)heads;
    b.op.p.indexer.head_dim = (unsigned)dim;
    b.op.p.indexer.scale = 0.125f;
    b.op.src[0] = bed_f32(&b, heads * dim, rows);
    b.op.src[1] = bed_f32(&b, heads, rows);
    b.op.src[2] = bed_cache(&b, format_of_name(fmt), dim, 1, (end - 1) / OP_KV_CHUNK + 2);
    bed_fill_cache(&b.op.src[2], end);
    b.run = (struct op_run){.rows = rows, .pos = pos};
    return b;
}

/* Small integers: scores are exact, and many are equal. */
static void make_equals(struct bed *b)
{
    for (int s = 0; s < 3; s++) {
        float *x = b->op.src[s].data;
        size_t n = s < 2 ? b->op.src[s].n[0] * b->run.rows
                         : b->op.src[s].n[0] * (b->run.pos + b->run.rows);

        for (size_t k = 0; k < n; k++)
            x[k] = (float)(bed_random() % 3) - 1.0f;
    }
}

/* Are the positions of a row ascending, and none left out that scores more than one of them? */
static bool is_best(const struct bed *b, size_t r)
{
    const int32_t *list = tensor_row(&b->op.dst[0], r);
    size_t k = b->op.dst[0].n[0], at = 0;
    double least = INFINITY, most = -INFINITY;

    for (size_t p = 0; p <= b->run.pos + r; p++) {
        if (at < k && list[at] == (int32_t)p) {
            least = fmin(least, score(b, r, p));
            at++;
        } else {
            most = fmax(most, score(b, r, p));
        }
    }
    return at == k && least >= most;
}

/* Which of equals stay is nothing to predict, but they are the best, and the same every way. */
static int indexer_of_equals(int *ret_run)
{
    int bad = 0;

    for (size_t top_k = 1; top_k < 300; top_k += 37) {
        struct bed b = indexer_bed("f32", 500, 7, top_k, 3, 32);
        const char *name;
        struct err err;

        make_equals(&b);
        b.want = NULL;
        bed_out(&b, 0, top_k, 7);
        bad += CHECK(b);
        b = indexer_bed("f32", 500, 7, top_k, 3, 32);
        make_equals(&b);
        b.op.dst[0] = bed_f32(&b, top_k, 7);
        if (backend_by_name("cpu")->run(bed_backend(0, &name), &b.op, 1, &b.run,
                                        bed_alloc(&b, backend_by_name("cpu")->scratch_bytes(
                                                          bed_backend(0, &name), &b.op, 7)),
                                        &err) < 0)
            bad++;
        for (size_t r = 0; r < 7; r++)
            if (!is_best(&b, r)) {
                printf("  FAIL INDEXER of equals, %zu of 500: row %zu is not of the best\n", top_k,
                       r);
                bad++;
            }
        bed_clear(&b);
    }
    return bad;
}

int cases_INDEXER(int *ret_run)
{
    static const struct {
        size_t pos, rows, top_k, heads, dim;
        unsigned group;
    } shapes[] = {{0, 40, 24, 4, 64, 0},    {500, 3, 64, 5, 32, 0}, {1023, 1, 300, 8, 128, 0},
                  {250, 12, 255, 5, 32, 0}, {0, 40, 6, 4, 64, 4},   {1500, 3, 64, 5, 32, 4}};
    int bad = 0;

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        for (int f = 0; f < 2; f++) {
            struct bed b = indexer_bed(cache_formats[f], shapes[i].pos, shapes[i].rows,
                                       shapes[i].top_k, shapes[i].heads, shapes[i].dim);

            b.op.p.indexer.group = shapes[i].group;
            make_positive(&b);
            bed_out(&b, 0, shapes[i].top_k, shapes[i].rows);
            make_lists(&b, shapes[i].top_k);
            bad += CHECK(b);
        }
    return bad + indexer_of_equals(ret_run);
}

/* -- SPARSE ----------------------------------------------------------------------------- */

static double want_sparse(const struct bed *b, int o, size_t r, size_t i)
{
    const struct op *op = &b->op;
    size_t dim = op->p.attention.head_dim, v_dim = op->p.attention.v_dim, head = i / v_dim;
    size_t kv = head / (op->p.attention.n_heads / op->p.attention.n_kv_heads);
    const int32_t *list = tensor_row(&op->src[4], r);
    size_t n = b->run.pos + r + 1 < op->src[4].n[0] ? b->run.pos + r + 1 : op->src[4].n[0];
    double max = -INFINITY, sum = 0, value = 0;
    float row[MAX_DIM];

    (void)o;
    for (size_t p = 0; p < n && i % v_dim == 0; p++) {
        double s = 0;

        op->src[1].fmt->to_f32(bed_slot(&op->src[1], kv, (size_t)list[p]), row, dim);
        for (size_t d = 0; d < dim; d++)
            s += bed_src(b, 0, r, head * dim + d) * (double)row[d];
        b->truth[p] = s * (double)op->p.attention.scale;
    }
    for (size_t p = 0; p < n; p++)
        max = fmax(max, b->truth[p]);
    for (size_t p = 0; p < n; p++) {
        op->src[2].fmt->to_f32(bed_slot(&op->src[2], kv, (size_t)list[p]), row, v_dim);
        sum += exp(b->truth[p] - max);
        value += exp(b->truth[p] - max) * (double)row[i % v_dim];
    }
    if (op->src[3].fmt)
        sum += exp((double)((const float *)op->src[3].data)[head] - max);
    return value / sum;
}

/* Ascending positions of what each row sees: all, or a random choice of as many as fit. */
static void fill_lists(const struct bed *b)
{
    size_t top_k = b->op.src[4].n[0];

    for (size_t r = 0; r < b->run.rows; r++) {
        int32_t *list = tensor_row(&b->op.src[4], r);
        size_t n = b->run.pos + r + 1, left = n < top_k ? n : top_k;

        for (size_t p = 0; p < n; p++)
            if (bed_random() % (n - p) < left) {
                *list++ = (int32_t)p;
                left--;
            }
    }
}

int cases_SPARSE(int *ret_run)
{
    static const struct {
        size_t pos, rows, top_k;
        unsigned heads, kv_heads, dim, v_dim;
        bool v_in_k, sinks;
    } shapes[] = {{0, 40, 24, 4, 1, 96, 64, true, false},
                  {700, 2, 512, 6, 2, 64, 32, false, true},
                  {1000, 1, 300, 33, 1, 64, 64, true, true},
                  {10, 5, 64, 4, 4, 32, 32, false, false}};
    int bad = 0;

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        for (int f = 0; f < 4; f++) {
            struct bed b = {
                .op = {.kind = OP_SPARSE}, .nmse = 1e-10, .want = want_sparse, .row_src = 1 | 16};
            size_t end = shapes[i].pos + shapes[i].rows, chunks = (end - 1) / OP_KV_CHUNK + 2;
            const struct format *fmt = format_of_name(cache_formats[f]);

            snprintf(b.what, sizeof(b.what), "%s %u/%u heads of %u, %zu of %zu, %zu rows",
                     fmt->name, shapes[i].heads, shapes[i].kv_heads, shapes[i].dim, shapes[i].top_k,
                     shapes[i].pos, shapes[i].rows);
            b.op.p.attention.n_heads = shapes[i].heads;
            b.op.p.attention.n_kv_heads = shapes[i].kv_heads;
            b.op.p.attention.head_dim = shapes[i].dim;
            b.op.p.attention.v_dim = shapes[i].v_dim;
            b.op.p.attention.scale = 0.125f;
            b.run = (struct op_run){.rows = shapes[i].rows, .pos = shapes[i].pos};
            b.op.src[0] = bed_f32(&b, (size_t)shapes[i].heads * shapes[i].dim, b.run.rows);
            b.op.src[1] = bed_cache(&b, fmt, shapes[i].dim, shapes[i].kv_heads, chunks);
            bed_fill_cache(&b.op.src[1], end);
            if (shapes[i].v_in_k) {
                b.op.src[2] = b.op.src[1];
                b.op.src[2].n[0] = shapes[i].v_dim;
            } else {
                b.op.src[2] = bed_cache(&b, fmt, shapes[i].v_dim, shapes[i].kv_heads, chunks);
                bed_fill_cache(&b.op.src[2], end);
            }
            if (shapes[i].sinks)
                b.op.src[3] = bed_f32(&b, shapes[i].heads, 1);
            b.op.src[4] = bed_f32(&b, shapes[i].top_k, b.run.rows);
            fill_lists(&b);
            bed_out(&b, 0, (size_t)shapes[i].heads * shapes[i].v_dim, b.run.rows);
            b.truth = bed_alloc(&b, (shapes[i].top_k + 1) * sizeof(double));
            bad += CHECK(b);
        }
    return bad;
}
