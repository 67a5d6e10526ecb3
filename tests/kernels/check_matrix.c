/* Checkers of the matrix kernels: quantize, matvec, pack, gemm; see check.h. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/cpuid.h"
#include "tests/kernels/check.h"

#define MAX_ROWS 40
#define MAX_COLS 40
#define CANARY   0x5a

static const size_t block_counts[] = {1, 2, 3, 7, 16, 33, 128};
static const size_t lengths[] = {1, 2, 3, 7, 15, 16, 17, 31, 33, 48, 69, 128, 257, 1000};
#define N_BLOCK_COUNTS (sizeof(block_counts) / sizeof(block_counts[0]))
#define N_LENGTHS      (sizeof(lengths) / sizeof(lengths[0]))

/* One problem: 40 rows of weights, 40 of activations, and the twin's answer to it. */
struct problem {
    const struct format *f;
    enum fill how;
    size_t n;
    size_t row_bytes;
    size_t act_bytes;
    char *w;
    char *act;
    float *want; /* [MAX_COLS][MAX_ROWS] */
    /* Where a kernel sees its arguments. */
    struct guard g_w, g_act, g_y, g_packed, g_scratch;
};

static void problem_init(struct problem *p, const struct format *f, enum fill how, size_t n)
{
    memset(p, 0, sizeof(*p));
    p->f = f;
    p->how = how;
    p->n = n;
    p->row_bytes = format_row_bytes(f, n);
    p->act_bytes = act_row_bytes(f->act, n);
    p->w = malloc(MAX_ROWS * p->row_bytes);
    p->act = malloc(MAX_COLS * p->act_bytes);
    p->want = calloc(MAX_COLS * MAX_ROWS, sizeof(float));
    fill_weights(f, how, p->w, MAX_ROWS * n / f->block_elems);
    for (size_t c = 0; c < MAX_COLS; c++)
        fill_act(f->act, how, p->act + c * p->act_bytes, n);
    guard_init(&p->g_w, MAX_ROWS * p->row_bytes + 64);
    guard_init(&p->g_act, MAX_COLS * p->act_bytes);
    guard_init(&p->g_y, MAX_COLS * (MAX_ROWS + 3) * sizeof(float));
    guard_init(&p->g_scratch, KERNELS_SCRATCH_BYTES(n));
    guard_init(&p->g_packed, (MAX_COLS / KERNELS_TILE_COLS + 1) * KERNELS_TILE_COLS * p->act_bytes);
}

static void problem_clear(struct problem *p)
{
    free(p->w);
    free(p->act);
    free(p->want);
    guard_clear(&p->g_w);
    guard_clear(&p->g_act);
    guard_clear(&p->g_y);
    guard_clear(&p->g_scratch);
    guard_clear(&p->g_packed);
}

/* The twin, step columns at a time: one, to prove a matvec's batches; four, which are then proven, for a gemm. */
static void problem_answer(struct problem *p, matvec_fn *twin, size_t rows, size_t cols,
                           size_t step)
{
    for (size_t c = 0; c < cols; c += step) {
        struct matvec m = {
            .w = p->w,
            .row_bytes = p->row_bytes,
            .rows = rows,
            .n = p->n,
            .act = p->act + c * p->act_bytes,
            .act_stride = p->act_bytes,
            .cols = step,
            .y = p->want + c * MAX_ROWS,
            .y_stride = MAX_ROWS,
        };

        twin(&m);
    }
}

/* Rows of weights that end (or begin) at the unreadable page, at whatever alignment that gives. */
static void *place(const struct guard *g, const void *from, size_t bytes, bool at_end)
{
    void *to = at_end ? guard_end(g, bytes) : guard_begin(g, bytes);

    memcpy(to, from, bytes);
    return to;
}

/* y lies [cols][stride] with canaries between and before; counts what differs. */
static int compare(const struct row *r, const struct problem *p, const float *y, size_t rows,
                   size_t cols, size_t stride)
{
    float canary;

    memset(&canary, CANARY, sizeof(canary));
    for (size_t c = 0; c < cols; c++) {
        const float *want = p->want + c * MAX_ROWS;
        const float *got = y + c * stride;
        size_t at = check_same(want, got, rows);

        if (at < rows)
            return check_fail(r, "n=%zu rows=%zu cols=%zu %s: y[%zu][%zu] is %a, the twin says %a",
                              p->n, rows, cols, fill_name(p->how), c, at, (double)got[at],
                              (double)want[at]);
        for (size_t i = rows; i < stride && c + 1 < cols; i++)
            if (memcmp(&got[i], &canary, sizeof(canary)) != 0)
                return check_fail(r, "n=%zu rows=%zu cols=%zu: wrote past the rows of column %zu",
                                  p->n, rows, cols, c);
    }
    return 0;
}

static int try_matvec(const struct row *r, struct problem *p, size_t rows, size_t cols, bool at_end)
{
    size_t stride = rows + (at_end ? 0 : 3);
    size_t y_floats = (cols - 1) * stride + rows;
    struct matvec m = {
        .w = place(&p->g_w, p->w, rows * p->row_bytes, at_end),
        .row_bytes = p->row_bytes,
        .rows = rows,
        .n = p->n,
        .act = place(&p->g_act, p->act, cols * p->act_bytes, at_end),
        .act_stride = p->act_bytes,
        .cols = cols,
        .y = at_end ? guard_end(&p->g_y, y_floats * sizeof(float))
                    : guard_begin(&p->g_y, y_floats * sizeof(float)),
        .y_stride = stride,
    };

    memset(p->g_y.page, CANARY, p->g_y.capacity);
    r->kernel.matvec(&m);
    return compare(r, p, m.y, rows, cols, stride);
}

/* Rows with a gap between them, as a slice of a wider tensor has. */
static int try_gap(const struct row *r, struct problem *p, size_t rows, size_t cols)
{
    size_t row_bytes = p->row_bytes + p->f->block_bytes;
    char *w = malloc(rows * row_bytes);
    struct matvec m = {
        .w = w,
        .row_bytes = row_bytes,
        .rows = rows,
        .n = p->n,
        .act = p->act,
        .act_stride = p->act_bytes,
        .cols = cols,
        .y = guard_begin(&p->g_y, rows * cols * sizeof(float)),
        .y_stride = rows,
    };
    int bad;

    memset(w, 0xff, rows * row_bytes);
    for (size_t i = 0; i < rows; i++)
        memcpy(w + i * row_bytes, p->w + i * p->row_bytes, p->row_bytes);
    r->kernel.matvec(&m);
    bad = compare(r, p, m.y, rows, cols, rows);
    free(w);
    return bad;
}

/* The twin alone has a bound instead of a twin: double precision over the decoded weights. */
static int check_bound(const struct row *r, const struct problem *p, size_t rows, size_t cols)
{
    float *w = malloc(p->n * sizeof(float));
    double *x = malloc(p->n * sizeof(double));
    int bad = 0;

    for (size_t i = 0; i < rows && !bad; i++) {
        p->f->to_f32(p->w + i * p->row_bytes, w, p->n);
        for (size_t c = 0; c < cols && !bad; c++) {
            double want = 0, size = 0, largest = 0;
            double got = (double)p->want[c * MAX_ROWS + i];

            act_to_f64(p->f->act, p->act + c * p->act_bytes, p->n, x);
            for (size_t k = 0; k < p->n; k++)
                largest = fmax(largest, fabs((double)w[k]));
            for (size_t k = 0; k < p->n; k++) {
                want += (double)w[k] * x[k];
                size += largest * fabs(x[k]);
            }
            if (!(fabs(want - got) <= 4e-6 * size + 1e-36))
                bad = check_fail(r, "n=%zu %s: y[%zu][%zu] is %g, double precision says %g", p->n,
                                 fill_name(p->how), c, i, got, want);
        }
    }
    free(w);
    free(x);
    return bad;
}

static bool is_finite_fill(enum fill how)
{
    return how != FILL_HUGE_D && how != FILL_NAN_D && how != FILL_ANYTHING;
}

static size_t n_sizes(const struct format *f)
{
    return f->block_elems == 1 ? N_LENGTHS : N_BLOCK_COUNTS;
}

static size_t size_at(const struct format *f, size_t i)
{
    return f->block_elems == 1 ? lengths[i] : block_counts[i] * f->block_elems;
}

/* Every row count where it is cheap, the edges of panels where it is not. */
static bool takes_rows(size_t rows, size_t n)
{
    return n <= 1024 || rows < 3 || rows % 16 < 2 || rows == 31 || rows == MAX_ROWS;
}

/* Asked for each shape: the seed decides which ones a thin run tries. */
static bool skips_shape(void)
{
    return check_thin > 1 && check_random() % check_thin != 0;
}

static bool skips_size(size_t n)
{
    return check_thin > 1 && n > 4096;
}

static int matvec_problem(const struct row *r, struct problem *p)
{
    size_t cols_max = 4;
    int bad = 0;

    problem_answer(p, r->twin.matvec, MAX_ROWS, cols_max, 1);
    if (row_is_twin(r) && is_finite_fill(p->how))
        bad += check_bound(r, p, 4, 2);
    for (size_t rows = 1; rows <= MAX_ROWS && !bad; rows++)
        for (size_t cols = 1; takes_rows(rows, p->n) && cols <= cols_max && !bad; cols++)
            if (!skips_shape())
                bad += try_matvec(r, p, rows, cols, (rows + cols) % 3 != 0);
    if (!bad)
        bad += try_gap(r, p, 19, 3);
    return bad;
}

int check_matvec(const struct row *r)
{
    const struct format *f = format_of_name(r->fmt);
    int bad = 0;

    for (size_t i = 0; i < n_sizes(f); i++)
        for (int how = 0; how < FILL_COUNT; how++) {
            struct problem p;

            if (skips_size(size_at(f, i)) || (size_at(f, i) > 4096 && how > FILL_ONES))
                continue;
            problem_init(&p, f, (enum fill)how, size_at(f, i));
            bad += matvec_problem(r, &p);
            problem_clear(&p);
        }
    return bad;
}

/* The selection that has this row's tier at its top, so that pack and gemm belong together. */
static void select_tier(const struct row *r, struct kernels *k)
{
    kernels_select(k, cpu_tiers_cap(cpu_tiers(), r->tier));
}

static void pack_all(const struct kernels *k, enum format_id id, struct problem *p, size_t cols,
                     char *out)
{
    for (size_t c = 0; c < cols; c += k->tile_cols[id]) {
        size_t left = cols - c;
        struct pack pack = {
            .act = p->act + c * p->act_bytes,
            .act_stride = p->act_bytes,
            .n = p->n,
            .cols = left < k->tile_cols[id] ? left : k->tile_cols[id],
            .out = out + c / k->tile_cols[id] * k->pack_bytes[id](p->n),
        };

        k->pack[id](&pack);
    }
}

static int try_gemm(const struct row *r, const struct kernels *k, struct problem *p, size_t rows,
                    size_t cols, bool at_end)
{
    enum format_id id = format_id_of(p->f);
    size_t stride = rows + (at_end ? 0 : 3);
    size_t y_floats = (cols - 1) * stride + rows;
    struct gemm g = {
        .w = place(&p->g_w, p->w, rows * p->row_bytes, at_end),
        .row_bytes = p->row_bytes,
        .rows = rows,
        .n = p->n,
        .cols = cols,
        .y = at_end ? guard_end(&p->g_y, y_floats * sizeof(float))
                    : guard_begin(&p->g_y, y_floats * sizeof(float)),
        .y_stride = stride,
        .scratch = guard_end(&p->g_scratch, KERNELS_SCRATCH_BYTES(p->n)),
    };

    if (k->pack[id]) {
        size_t tiles = (cols + k->tile_cols[id] - 1) / k->tile_cols[id];
        char *packed = guard_end(&p->g_packed, tiles * k->pack_bytes[id](p->n));

        pack_all(k, id, p, cols, packed);
        g.packed = packed;
    } else {
        g.act = place(&p->g_act, p->act, cols * p->act_bytes, at_end);
        g.act_stride = p->act_bytes;
    }
    memset(p->g_y.page, CANARY, p->g_y.capacity);
    memset(p->g_scratch.page, 0xff, p->g_scratch.capacity);
    r->kernel.gemm(&g);
    return compare(r, p, g.y, rows, cols, stride);
}

/* The forty rows over and over: more panels than a kernel keeps at a time, scratch to the last byte. */
static int try_tall(const struct row *r, const struct kernels *k, struct problem *p, size_t cols)
{
    enum format_id id = format_id_of(p->f);
    size_t rows = 7 * MAX_ROWS + 3;
    char *w = malloc(8 * MAX_ROWS * p->row_bytes);
    float *y = malloc(rows * cols * sizeof(float));
    struct gemm g = {
        .w = w,
        .row_bytes = p->row_bytes,
        .rows = rows,
        .n = p->n,
        .act = p->act,
        .act_stride = p->act_bytes,
        .packed = p->g_packed.page,
        .cols = cols,
        .y = y,
        .y_stride = rows,
        .scratch = guard_end(&p->g_scratch, KERNELS_SCRATCH_BYTES(p->n)),
    };
    int bad = 0;

    for (size_t i = 0; i < 8; i++)
        memcpy(w + i * MAX_ROWS * p->row_bytes, p->w, MAX_ROWS * p->row_bytes);
    if (k->pack[id])
        pack_all(k, id, p, cols, p->g_packed.page);
    r->kernel.gemm(&g);
    for (size_t i = 0; i < rows * cols && !bad; i++) {
        size_t c = i / rows, row = i % rows % MAX_ROWS;

        if (check_same(&p->want[c * MAX_ROWS + row], &y[i], 1) < 1)
            bad = check_fail(r, "n=%zu rows=%zu: y[%zu][%zu] differs", p->n, rows, c, i % rows);
    }
    free(w);
    free(y);
    return bad;
}

static bool takes_shape(size_t rows, size_t cols, size_t n, enum fill how)
{
    bool edge_rows = rows == 1 || rows % 16 < 2 || rows == 31 || rows == MAX_ROWS;
    bool edge_cols = cols % 6 < 2 || cols == 23;

    if (n > 4096)
        return rows >= 31 && edge_rows && cols >= 11 && edge_cols;
    return n > 1024 || how > FILL_ONES ? edge_rows && edge_cols
                                       : edge_rows || (edge_cols && cols < 14);
}

int check_gemm(const struct row *r)
{
    const struct format *f = format_of_name(r->fmt);
    struct kernels k;
    int bad = 0;

    select_tier(r, &k);
    if (k.gemm[format_id_of(f)] != r->kernel.gemm)
        return check_fail(r, "is not what the selection takes at its own tier");
    for (size_t i = 0; i < n_sizes(f); i++)
        for (int how = 0; how < FILL_COUNT; how++) {
            struct problem p;

            if (skips_size(size_at(f, i)) || (size_at(f, i) > 1024 && how > FILL_ONES))
                continue;
            problem_init(&p, f, (enum fill)how, size_at(f, i));
            problem_answer(&p, r->twin.matvec, MAX_ROWS, MAX_COLS, 4);
            for (size_t rows = 1; rows <= MAX_ROWS && !bad; rows++)
                for (size_t cols = 1; cols <= MAX_COLS && !bad; cols++)
                    if (takes_shape(rows, cols, p.n, (enum fill)how) && !skips_shape())
                        bad += try_gemm(r, &k, &p, rows, cols, (rows + cols) % 3 != 0);
            if (!bad && how == FILL_RANDOM)
                bad += try_tall(r, &k, &p, 13);
            problem_clear(&p);
        }
    return bad;
}

static enum act_kind act_of_name(const char *name)
{
    return strcmp(name, "q8_256") == 0 ? ACT_Q8_256 : ACT_Q8_32;
}

/* What a tile means is its gemm's matter; here: every byte is written, none outside. */
int check_pack(const struct row *r)
{
    enum act_kind kind = act_of_name(r->fmt);
    int bad = 0;

    for (size_t i = 0; i < N_BLOCK_COUNTS && !bad; i++) {
        size_t n = block_counts[i] * act_block_elems(kind);
        size_t row = act_row_bytes(kind, n);
        size_t bytes = KERNELS_TILE_COLS * row;
        struct guard act, out;
        char *first = malloc(bytes);

        guard_init(&act, KERNELS_TILE_COLS * row);
        guard_init(&out, bytes);
        for (size_t cols = 1; cols <= KERNELS_TILE_COLS && !bad; cols++) {
            struct pack p = {.act = guard_end(&act, cols * row),
                             .act_stride = row,
                             .n = n,
                             .cols = cols,
                             .out = guard_end(&out, bytes)};

            for (size_t c = 0; c < cols; c++)
                fill_act(kind, FILL_RANDOM, (char *)guard_end(&act, cols * row) + c * row, n);
            memset(p.out, 0, bytes);
            r->kernel.pack(&p);
            memcpy(first, p.out, bytes);
            memset(p.out, 0xff, bytes);
            r->kernel.pack(&p);
            if (memcmp(first, p.out, bytes) != 0)
                bad = check_fail(r, "n=%zu cols=%zu: leaves bytes of the tile unwritten", n, cols);
        }
        guard_clear(&act);
        guard_clear(&out);
        free(first);
    }
    return bad;
}

enum { X_NORMAL, X_ZEROS, X_TINY, X_SUBNORMAL, X_HUGE, X_TIES, X_SPIKE, X_BAD, X_COUNT };

static void fill_x(float *x, size_t n, int how)
{
    for (size_t i = 0; i < n; i++)
        switch (how) {
        case X_NORMAL: x[i] = check_normal(); break;
        case X_ZEROS: x[i] = check_random() % 2 ? 0.0f : -0.0f; break;
        case X_TINY: x[i] = check_normal() * 0x1p-120f; break;
        case X_SUBNORMAL: x[i] = check_normal() * 0x1p-140f; break;
        case X_HUGE: x[i] = check_normal() * 0x1p125f; break;
        /* 127 / a is 1: halves are ties */
        case X_TIES:
            x[i] = i % 32 == 0 ? 127.0f : (float)(int)(check_random() % 255) * 0.5f - 63.5f;
            break;
        case X_SPIKE: x[i] = i % 64 == 40 ? -1000.0f : check_normal(); break;
        default: x[i] = check_random() % 8 ? check_normal() : check_random() % 2 ? NAN : -INFINITY;
        }
}

/* The twin against the words of act.h: half a step off at most, sums that add up, padding of zeros. */
static int check_act_row(const struct row *r, enum act_kind kind, const float *x, size_t n,
                         const void *row)
{
    size_t padded = (n + act_block_elems(kind) - 1) / act_block_elems(kind) * act_block_elems(kind);
    const struct act_q8_32 *a = row;
    const struct act_q8_256 *b = row;
    int sum = 0;

    for (size_t i = 0; i < padded; i++) {
        int q = kind == ACT_Q8_32 ? a[i / 32].q[i % 32] : b[i / 256].q[i % 256];
        double d = (double)(kind == ACT_Q8_32 ? a[i / 32].d : b[i / 256].d);
        double want = i < n ? (double)x[i] : 0.0;

        sum += q;
        if (q == -128)
            return check_fail(r, "n=%zu: value %zu is -128", n, i);
        if (!(fabs(want - d * q) <= d * 0.50001) && !(d == 0.0 && fabs(want) < 1e-36))
            return check_fail(r, "n=%zu: value %zu, %g, became %d steps of %g", n, i, want, q, d);
        if (kind == ACT_Q8_32 && i % 32 == 31 && a[i / 32].sum != sum)
            return check_fail(r, "n=%zu: the sum of block %zu is wrong", n, i / 32);
        if (kind == ACT_Q8_256 && i % 16 == 15 && b[i / 256].sums[i % 256 / 16] != sum)
            return check_fail(r, "n=%zu: sum %zu is wrong", n, i / 16);
        if (i % (kind == ACT_Q8_32 ? 32 : 16) == (kind == ACT_Q8_32 ? 31 : 15))
            sum = 0;
    }
    return 0;
}

static int try_quantize(const struct row *r, enum act_kind kind, size_t n, int how)
{
    size_t bytes = act_row_bytes(kind, n);
    char *want = malloc(bytes);
    struct guard gx, gout;
    float *x;
    char *out;
    int bad = 0;

    guard_init(&gx, n * sizeof(float));
    guard_init(&gout, bytes);
    x = guard_end(&gx, n * sizeof(float));
    out = guard_end(&gout, bytes);
    fill_x(x, n, how);
    memset(want, 0, bytes);
    memset(out, 0xff, bytes);
    r->twin.quantize(x, n, want);
    r->kernel.quantize(x, n, out);
    for (size_t i = 0; i < bytes && !bad; i++)
        if (out[i] != want[i])
            bad = check_fail(r, "n=%zu, input %d: byte %zu differs from the twin's", n, how, i);
    if (!bad && row_is_twin(r) && how != X_BAD)
        bad = check_act_row(r, kind, x, n, out);
    guard_clear(&gx);
    guard_clear(&gout);
    free(want);
    return bad;
}

int check_quantize(const struct row *r)
{
    enum act_kind kind = act_of_name(r->fmt);
    int bad = 0;

    for (int how = 0; how < X_COUNT; how++) {
        for (size_t n = 1; n <= 69 && !bad; n++)
            bad += try_quantize(r, kind, n, how);
        for (size_t n = 250; n <= 262 && !bad; n++)
            bad += try_quantize(r, kind, n, how);
        for (size_t n = 512; n <= 2048 && !bad; n += 256)
            bad += try_quantize(r, kind, n, how);
    }
    return bad;
}
