/* Measuring the kernels and keeping the figures.  See gauge.h. */

#include "daemon/memory/gauge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/formats/act.h"
#include "common/alloc.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/json.h"
#include "daemon/memory/kept.h"

_Static_assert(FORMAT_COUNT <= 64, "formats are told by the bits of a number");

#define WIDTH         ((size_t)2048) /* a matrix, as models of some billions have them */
#define HEIGHT        ((size_t)1024)
#define WEIGHTS_BYTES ((size_t)64 << 20) /* beyond the caches */
#define ORDINARY      0x3c /* 1.06 as f16, 0.01 as f32 and bf16, 2^-67 as an exponent alone */
#define ROWS_MAX      ((size_t)256)
#define OPS_MAX       ((size_t)128)
#define HEADS         ((size_t)16)
#define KV_HEADS      ((size_t)8)
#define HEAD_DIM      ((size_t)128)
#define DEPTH         ((size_t)512) /* positions before the first row */
#define KV_CHUNKS     3             /* of them and of ROWS_MAX more */
#define SMALL_OPS     ((size_t)100)
#define AT_ONCE       ((size_t)8) /* matrices of a run at one row */
#define RUNS_MIN      4
#define RUNS_MAX      200
#define ENOUGH_US     60000 /* of one point */
#define STATE_VERSION 1
#define STATE_MAX     ((size_t)64 << 10)

const size_t gauge_rows[GAUGE_POINTS] = {1, 8, 32, ROWS_MAX};

struct bench {
    const struct backend_ops *ops;
    struct backend *be;
    char *weights; /* WEIGHTS_BYTES */
    char *rows;    /* in, then out */
    void *scratch;
    size_t scratch_bytes;
};

static size_t rows_bytes(void)
{
    return ROWS_MAX * 2 * WIDTH * sizeof(float);
}

size_t gauge_staging_bytes(void)
{
    /* scratch is packed activations and partial sums: never more than the rows four times */
    return alloc_page_round(WEIGHTS_BYTES) + alloc_page_round(rows_bytes()) +
           alloc_page_round(4 * rows_bytes());
}

static struct op product(const struct bench *b, const struct format *f, size_t at)
{
    struct op op = {.kind = OP_MATMUL};

    op.p.matmul.n_weights = 1;
    op.p.matmul.act = f->act;
    op.src[0] = tensor_make(format_of(FORMAT_f32), b->rows, WIDTH, ROWS_MAX, 1, 1);
    op.src[0].stride[1] = act_row_bytes(f->act, WIDTH);
    op.src[1] = tensor_make(f, b->weights + at, WIDTH, HEIGHT, 1, 1);
    op.dst[0] = tensor_make(format_of(FORMAT_f32), b->rows + ROWS_MAX * WIDTH * sizeof(float),
                            HEIGHT, ROWS_MAX, 1, 1);
    return op;
}

/*
 * Seconds for one of these operations, by runs that walk over all of them: the
 * mean, which is what a model gets that runs beside whatever else runs here.
 */
static int time_ops(const struct bench *b, const struct op *ops, size_t n, size_t at_once,
                    size_t rows, size_t pos, double *ret_s, struct err *err)
{
    struct op_run run = {.rows = rows, .pos = pos, .n_out = rows};
    int64_t spent = 0;
    size_t at = 0, done = 0;

    for (int i = 0; i < RUNS_MAX && (i < RUNS_MIN || spent < ENOUGH_US); i++) {
        int64_t t0 = clock_us();
        int r = b->ops->run(b->be, ops + at, at_once, &run, b->scratch, err);

        if (r < 0)
            return r;
        if (i) { /* the first one meets cold code */
            spent += clock_us() - t0;
            done += at_once;
        }
        at += at_once;
        if (at + at_once > n)
            at = 0;
    }
    *ret_s = (double)MAX(spent, (int64_t)1) / 1e6 / (double)MAX(done, (size_t)1);
    return 0;
}

static int measure_format(struct gauge *g, const struct bench *b, enum format_id id,
                          struct err *err)
{
    const struct format *f = format_of(id);
    size_t bytes = format_row_bytes(f, WIDTH) * HEIGHT;
    size_t most = MIN(WEIGHTS_BYTES / alloc_page_round(bytes), OPS_MAX);
    struct op ops[OPS_MAX];
    int r = 0;

    for (size_t i = 0; i < most; i++)
        ops[i] = product(b, f, i * alloc_page_round(bytes));
    if (!most || !b->ops->can(b->be, &ops[0]) ||
        b->ops->scratch_bytes(b->be, &ops[0], ROWS_MAX) > b->scratch_bytes)
        return 0;
    for (int p = 0; p < GAUGE_POINTS && r >= 0; p++) {
        size_t at_once = MIN(MAX(AT_ONCE / gauge_rows[p], (size_t)1), most);
        double s = 0;

        r = time_ops(b, ops, most, at_once, gauge_rows[p], 0, &s, err);
        g->seconds[id][p] = s / (double)bytes;
    }
    g->known[id] = r >= 0;
    return r;
}

static struct op attention(const struct bench *b, const struct format *f, size_t at)
{
    const struct format *f32 = format_of(FORMAT_f32);
    size_t half = format_row_bytes(f, HEAD_DIM) * OP_KV_CHUNK * KV_HEADS * KV_CHUNKS;
    struct op op = {.kind = OP_ATTENTION};

    op.p.attention.n_heads = (unsigned)HEADS;
    op.p.attention.n_kv_heads = (unsigned)KV_HEADS;
    op.p.attention.head_dim = op.p.attention.v_dim = (unsigned)HEAD_DIM;
    op.p.attention.scale = 0.1F;
    op.src[0] = tensor_make(f32, b->rows, HEAD_DIM * HEADS, ROWS_MAX, 1, 1);
    op.src[1] = tensor_make(f, b->weights + at, HEAD_DIM, OP_KV_CHUNK, KV_HEADS, KV_CHUNKS);
    op.src[2] = tensor_make(f, b->weights + at + half, HEAD_DIM, OP_KV_CHUNK, KV_HEADS, KV_CHUNKS);
    op.dst[0] = tensor_make(f32, b->rows + ROWS_MAX * WIDTH * sizeof(float), HEAD_DIM * HEADS,
                            ROWS_MAX, 1, 1);
    return op;
}

static int measure_attention(struct gauge *g, const struct bench *b, enum format_id id,
                             struct err *err)
{
    const struct format *f = format_of(id);
    size_t position = 2 * format_row_bytes(f, HEAD_DIM) * KV_HEADS;
    size_t cache = position * OP_KV_CHUNK * KV_CHUNKS;
    size_t most = MIN(WEIGHTS_BYTES / alloc_page_round(cache), OPS_MAX);
    size_t middle = DEPTH + ROWS_MAX / 2; /* positions that a row of many sees */
    double one = 0, many = 0, group = (double)HEADS / (double)KV_HEADS;
    struct op ops[OPS_MAX];
    int r;

    for (size_t i = 0; i < most; i++)
        ops[i] = attention(b, f, i * alloc_page_round(cache));
    if (!most || !b->ops->can(b->be, &ops[0]) ||
        b->ops->scratch_bytes(b->be, &ops[0], ROWS_MAX) > b->scratch_bytes)
        return 0;
    r = time_ops(b, ops, most, MIN(most, AT_ONCE), 1, DEPTH, &one, err);
    if (r >= 0)
        r = time_ops(b, ops, most, 1, ROWS_MAX, DEPTH, &many, err);
    if (r < 0)
        return r;
    one /= (double)(position * DEPTH);
    many /= (double)(position * middle);
    g->attention[id][1] = MAX(many - one, 0) / ((double)ROWS_MAX * group - group);
    g->attention[id][0] = MAX(one - g->attention[id][1] * (group - 1), one / 2);
    g->attends[id] = true;
    return 0;
}

static int measure_rows(const struct bench *b, size_t rows, double *ret_s, struct err *err)
{
    struct op ops[SMALL_OPS];

    for (size_t i = 0; i < SMALL_OPS; i++) {
        struct tensor row = tensor_make(format_of(FORMAT_f32), b->rows, HEIGHT, rows, 1, 1);

        ops[i] = (struct op){.kind = OP_RMSNORM};
        ops[i].p.rmsnorm.eps = 1e-6F;
        ops[i].p.rmsnorm.group = HEIGHT;
        ops[i].src[0] = row;
        ops[i].src[1] = row;
        ops[i].src[1].n[1] = 1;
        ops[i].dst[0] = row;
        ops[i].dst[0].data = b->rows + ROWS_MAX * WIDTH * sizeof(float);
    }
    return time_ops(b, ops, SMALL_OPS, rows > 1 ? 1 : SMALL_OPS, rows, 0, ret_s, err);
}

static int measure_ops(struct gauge *g, const struct bench *b, struct err *err)
{
    double one = 0, many = 0;
    int r = measure_rows(b, 1, &one, err);

    if (r >= 0)
        r = measure_rows(b, ROWS_MAX, &many, err);
    if (r < 0)
        return r;
    g->op_s = one;
    g->row_byte_s = many / (double)(2 * ROWS_MAX * HEIGHT * sizeof(float));
    return 0;
}

/* -- what is kept ------------------------------------------------------------------------ */

static void name_machine(struct gauge *g, const struct backend_ops *ops, struct backend *be)
{
    struct str text = {0};
    struct device d = {0};
    const char *model = NULL;
    size_t n = 0;

    ops->describe(be, &d);
    if (file_read_all("/proc/cpuinfo", (size_t)4 << 20, &text, NULL) >= 0)
        model = strstr(str_text(&text), "model name");
    model = model ? strchr(model, ':') : NULL;
    model = model ? model + 1 + strspn(model + 1, " \t") : "a processor without a name";
    n = MIN(strcspn(model, "\n"), (size_t)80);
    snprintf(g->machine, sizeof g->machine, "%.*s, %s", (int)n, model, d.detail);
    str_clear(&text);
}

static char *state_path(const char *dir)
{
    return xasprintf("%s/kernels.json", dir);
}

/* One format's figures; what is missing or odd is not known. */
static bool take_list(const json_t *list, size_t n, double *ret)
{
    if (json_array_size(list) != n)
        return false;
    for (size_t i = 0; i < n; i++) {
        ret[i] = json_number_value(json_array_get(list, i));
        if (!(ret[i] >= 0 && ret[i] < 1))
            return false;
    }
    return true;
}

static json_t *list_of(const double *values, size_t n)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_real(values[i]));
    return list;
}

static void take(struct gauge *g, const json_t *all)
{
    const char *machine = "";
    const json_t *formats = json_object_get(all, "seconds");
    const json_t *caches = json_object_get(all, "attention");
    double op_s = 0, row_byte_s = 0;

    if (!kept_is_fresh(all, STATE_VERSION, GAUGE_KEPT_S) ||
        json_get_string(all, "machine", &machine, NULL) != 1 || strcmp(machine, g->machine) != 0)
        return;
    if (json_get_double(all, "op_s", 1e-9, 1, &op_s, NULL) != 1 ||
        json_get_double(all, "row_byte_s", 0, 1, &row_byte_s, NULL) != 1)
        return;
    g->op_s = op_s;
    g->row_byte_s = row_byte_s;
    for (int id = 0; id < FORMAT_COUNT; id++) {
        const char *name = format_of(id)->name;

        g->known[id] = take_list(json_object_get(formats, name), GAUGE_POINTS, g->seconds[id]);
        g->attends[id] = take_list(json_object_get(caches, name), 2, g->attention[id]);
    }
}

void gauge_open(struct gauge *g, const char *dir, const struct backend_ops *ops, struct backend *be)
{
    json_t *all;
    char *path;

    *g = (struct gauge){0};
    name_machine(g, ops, be);
    if (!dir || !*dir)
        return;
    path = state_path(dir);
    all = kept_load(path, STATE_MAX);
    if (all)
        take(g, all);
    json_decref(all);
    free(path);
}

static void save(const struct gauge *g, const char *dir)
{
    json_t *formats = json_object(), *caches = json_object(), *all;
    char *path = state_path(dir);

    for (int id = 0; id < FORMAT_COUNT; id++) {
        const char *name = format_of(id)->name;

        if (g->known[id])
            json_object_set_new(formats, name, list_of(g->seconds[id], GAUGE_POINTS));
        if (g->attends[id])
            json_object_set_new(caches, name, list_of(g->attention[id], 2));
    }
    all = json_pack("{s:i, s:I, s:s, s:f, s:f, s:o, s:o}", "version", STATE_VERSION, "at",
                    (json_int_t)clock_wall_s(), "machine", g->machine, "op_s", g->op_s,
                    "row_byte_s", g->row_byte_s, "seconds", formats, "attention", caches);
    kept_save(dir, path, all);
    free(path);
}

/* -- the door ---------------------------------------------------------------------------- */

bool gauge_lacks(const struct gauge *g, uint64_t formats, enum format_id cache)
{
    for (int id = 0; id < FORMAT_COUNT; id++)
        if (formats >> id & 1 && !g->known[id])
            return true;
    return g->op_s <= 0 || !g->attends[cache];
}

int gauge_measure(struct gauge *g, uint64_t formats, enum format_id cache, const char *dir,
                  const struct backend_ops *ops, struct backend *be, struct err *err)
{
    struct bench b = {.ops = ops, .be = be, .scratch_bytes = 4 * rows_bytes()};
    int r = 0;

    b.weights = alloc_pages(WEIGHTS_BYTES, 1);
    b.rows = alloc_pages(rows_bytes(), 1);
    b.scratch = alloc_pages(b.scratch_bytes, 1);
    if (!b.weights || !b.rows || !b.scratch)
        r = err_set(err, ERR_NOMEM, "the kernel has no %zu bytes to measure the kernels with",
                    gauge_staging_bytes());
    if (r >= 0) /* pages of its own, and scales that are neither zero nor too small for a float */
        memset(b.weights, ORDINARY, WEIGHTS_BYTES);
    if (r >= 0 && g->op_s <= 0)
        r = measure_ops(g, &b, err);
    if (r >= 0 && !g->attends[cache])
        r = measure_attention(g, &b, cache, err);
    for (int id = 0; id < FORMAT_COUNT && r >= 0; id++)
        if (formats >> id & 1 && !g->known[id])
            r = measure_format(g, &b, (enum format_id)id, err);
    free_pages(b.weights, WEIGHTS_BYTES);
    free_pages(b.rows, rows_bytes());
    free_pages(b.scratch, b.scratch_bytes);
    if (r >= 0 && dir && *dir)
        save(g, dir);
    return r;
}

double gauge_seconds(const struct gauge *g, enum format_id f, double bytes, double rows)
{
    const double *s;
    int p;

    if (f >= FORMAT_COUNT || !g->known[f])
        return 0;
    s = g->seconds[f];
    for (p = 0; p < GAUGE_POINTS - 1; p++) {
        double from = (double)gauge_rows[p], to = (double)gauge_rows[p + 1];

        if (rows <= to)
            return bytes * (s[p] + (s[p + 1] - s[p]) * (MAX(rows, from) - from) / (to - from));
    }
    return bytes * s[p] * rows / (double)gauge_rows[p];
}

double gauge_attention_seconds(const struct gauge *g, enum format_id cache, double bytes,
                               double queries)
{
    if (cache >= FORMAT_COUNT || !g->attends[cache])
        return 0;
    return bytes * (g->attention[cache][0] + g->attention[cache][1] * MAX(queries - 1, 0.0));
}

double gauge_ram_rate(const struct gauge *g)
{
    double best = 0;

    for (int id = 0; id < FORMAT_COUNT; id++)
        if (g->known[id] && g->seconds[id][0] > 0)
            best = MAX(best, 1.0 / g->seconds[id][0]);
    return best;
}
