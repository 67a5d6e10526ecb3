/* Memory, random numbers, and the many ways to run one op; see bed.h. */
#include "tests/kernels/ops/bed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/cpuid.h"
#include "backends/formats/act.h"

#define MAX_BACKENDS 12
#define CANARY       0x5a
#define CANARY_BYTES 256

struct opened {
    struct backend *be;
    char name[48];
};

static struct opened opened[MAX_BACKENDS];
static int n_opened;
static uint64_t state;

void bed_seed(uint64_t seed)
{
    state = seed;
}

uint64_t bed_random(void)
{
    uint64_t z = state += 0x9e3779b97f4a7c15ULL;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

/* The sum of twelve uniform numbers is normal enough. */
float bed_normal(void)
{
    double s = -6.0;

    for (int i = 0; i < 12; i++)
        s += (double)(bed_random() >> 11) * 0x1p-53;
    return (float)s;
}

void *bed_alloc(struct bed *b, size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 127) / 64 * 64);

    if (!p || b->n_ptr == BED_MAX_PTR)
        abort();
    memset(p, 0, bytes);
    b->ptr[b->n_ptr++] = p;
    return p;
}

void bed_clear(struct bed *b)
{
    while (b->n_ptr)
        free(b->ptr[--b->n_ptr]);
}

struct tensor bed_tensor(struct bed *b, const struct format *f, size_t n0, size_t n1, size_t n2,
                         size_t n3)
{
    struct tensor t = tensor_make(f, NULL, n0, n1, n2, n3);

    t.data = bed_alloc(b, tensor_bytes(&t));
    return t;
}

struct tensor bed_f32(struct bed *b, size_t n0, size_t n1)
{
    struct tensor t = bed_tensor(b, format_of_name("f32"), n0, n1, 1, 1);

    for (size_t i = 0; i < n0 * n1; i++)
        ((float *)t.data)[i] = bed_normal();
    return t;
}

struct tensor bed_weights(struct bed *b, const struct format *f, size_t n0, size_t n1, size_t n2)
{
    struct tensor t = bed_tensor(b, f, n0, n1, n2, 1);
    float *row = malloc(n0 * sizeof(float));

    for (size_t r = 0; r < n1 * n2; r++) {
        for (size_t i = 0; i < n0; i++)
            row[i] = bed_normal();
        f->from_f32(row, tensor_row(&t, r), n0);
    }
    free(row);
    return t;
}

static void fill_q8_32(struct act_q8_32 *a)
{
    for (int i = 0; i < 32; i++) {
        a->q[i] = (int8_t)((int)(bed_random() % 255) - 127);
        a->sum += a->q[i];
    }
    a->d = fabsf(bed_normal()) / 127.0f;
}

static void fill_q8_256(struct act_q8_256 *a)
{
    for (int i = 0; i < 256; i++) {
        a->q[i] = (int8_t)((int)(bed_random() % 255) - 127);
        a->sums[i / 16] = (int16_t)(a->sums[i / 16] + a->q[i]);
    }
    a->d = fabsf(bed_normal()) / 127.0f;
}

struct tensor bed_act(struct bed *b, enum act_kind act, size_t n, size_t rows)
{
    size_t bytes = act_row_bytes(act, n);
    struct tensor t;

    if (act == ACT_F32)
        return bed_f32(b, n, rows);
    t = bed_tensor(b, format_of_name("f32"), bytes / sizeof(float), rows, 1, 1);
    t.n[0] = n;
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < n; i += act_block_elems(act))
            if (act == ACT_Q8_32)
                fill_q8_32((struct act_q8_32 *)tensor_row(&t, r) + i / 32);
            else
                fill_q8_256((struct act_q8_256 *)tensor_row(&t, r) + i / 256);
    return t;
}

void bed_out(struct bed *b, int i, size_t n0, size_t rows)
{
    b->op.dst[i] = bed_f32(b, n0, rows);
    b->out[i] = b->op.dst[i];
    b->n_out = i + 1;
    b->out_is_dst = true;
}

struct tensor bed_state(struct bed *b, size_t n0, size_t n1, size_t n2, size_t n3)
{
    struct tensor t = bed_tensor(b, format_of_name("f32"), n0, n1, n2, n3);
    size_t bytes = tensor_bytes(&t);

    for (size_t i = 0; i < bytes / sizeof(float); i++)
        ((float *)t.data)[i] = bed_normal() * 0.5f;
    b->state[b->n_state] = t;
    b->initial[b->n_state] = bed_alloc(b, bytes);
    memcpy(b->initial[b->n_state++], t.data, bytes);
    return t;
}

double bed_weight(const struct tensor *w, size_t stack, size_t row, size_t i)
{
    size_t elems = w->fmt->block_elems;
    const char *at = (const char *)w->data + stack * w->stride[2] + row * w->stride[1];
    float block[256];

    w->fmt->to_f32(at + i / elems * w->fmt->block_bytes, block, elems);
    return (double)block[i % elems];
}

double bed_activation(enum act_kind act, const struct tensor *t, size_t row, size_t i)
{
    const void *at = tensor_row(t, row);

    switch (act) {
    case ACT_Q8_32: {
        const struct act_q8_32 *a = (const struct act_q8_32 *)at + i / 32;

        return (double)a->d * a->q[i % 32];
    }
    case ACT_Q8_256: {
        const struct act_q8_256 *a = (const struct act_q8_256 *)at + i / 256;

        return (double)a->d * a->q[i % 256];
    }
    default: return (double)((const float *)at)[i];
    }
}

double bed_src(const struct bed *b, int s, size_t r, size_t i)
{
    return (double)tensor_f32(&b->op.src[s], r)[i];
}

double bed_vec(const struct bed *b, int s, size_t i)
{
    return (double)((const float *)b->op.src[s].data)[i];
}

double bed_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* -- running ------------------------------------------------------------------------- */

int bed_open(const char *tier, unsigned only_threads)
{
    static const char *const tiers[] = {"scalar", "avx2", "avx512", "neon", "dotprod", "i8mm"};
    struct device dev;
    struct err err;

    if (backend_probe(&dev, 1, &err) != 1)
        return 0;
    for (size_t i = 0; i < sizeof(tiers) / sizeof(tiers[0]); i++) {
        unsigned mask = cpu_tiers_cap(cpu_tiers(), tiers[i]);

        if (!mask || strcmp(cpu_tier_name(mask), tiers[i]) != 0 ||
            (tier && strcmp(tier, tiers[i]) != 0 && i > 0))
            continue;
        for (unsigned threads = 1; threads <= 3; threads++) {
            struct backend_options opt = {.threads = threads, .cpu = tiers[i]};
            struct opened *o = &opened[n_opened];

            if (only_threads && threads != (i == 0 ? 1 : only_threads))
                continue;
            if (dev.ops->open(&dev, &opt, &o->be, &err) < 0) {
                printf("cannot open: %s\n", err.text);
                return 0;
            }
            snprintf(o->name, sizeof(o->name), "%s with %u threads", tiers[i], threads);
            n_opened++;
        }
    }
    return n_opened;
}

void bed_close(void)
{
    while (n_opened)
        backend_by_name("cpu")->close(opened[--n_opened].be);
}

struct backend *bed_backend(int i, const char **ret_name)
{
    if (i >= n_opened)
        return NULL;
    *ret_name = opened[i].name;
    return opened[i].be;
}

/* The rows [from, from + rows) as a batch of their own. */
static struct op part_of(const struct bed *b, size_t from, size_t rows, struct op_run *ret_run)
{
    struct op op = b->op;

    for (int i = 0; i < OP_MAX_SRC; i++)
        if (b->row_src >> i & 1) {
            op.src[i].data = tensor_row(&b->op.src[i], from);
            op.src[i].n[1] = rows;
        }
    for (int i = 0; i < b->n_out && b->out_is_dst; i++) {
        op.dst[i].data = tensor_row(&b->op.dst[i], from);
        op.dst[i].n[1] = b->whole ? op.dst[i].n[1] : rows;
    }
    *ret_run = b->run;
    ret_run->rows = rows;
    ret_run->pos += from;
    if (ret_run->tokens)
        ret_run->tokens += from;
    return op;
}

/* The experts of a MOE two by two, last first: dst must get the bits that it has. */
static int run_pieces(struct backend *be, const struct op *whole, const struct op_run *run,
                      void *scratch, struct err *err)
{
    static const void *data[OP_MAX_EXPERTS][3];
    struct op_experts experts = {.data = data, .first = true};
    const struct backend_ops *cpu = backend_by_name("cpu");
    size_t bytes = tensor_bytes(&whole->dst[0]);
    struct op op = *whole;
    void *copy = malloc(bytes);
    int r = 0;

    memcpy(copy, whole->dst[0].data, bytes);
    memset(whole->dst[0].data, 0xa5, bytes);
    op.p.moe.experts = &experts;
    for (int src = 3; src <= 5; src++)
        op.src[src].data = NULL;
    for (unsigned e = op.p.moe.n_expert; e > 0 && r >= 0; e -= e > 1 ? 2 : 1) {
        memset(data, 0, sizeof(data));
        for (unsigned i = e; i > 0 && i + 2 > e; i--)
            for (int w = 0; w < 3; w++)
                data[i - 1][w] =
                    (const char *)whole->src[3 + w].data + (i - 1) * whole->src[3 + w].stride[2];
        r = cpu->run(be, &op, 1, run, scratch, err);
        experts.first = false;
    }
    memset(data, 0, sizeof(data));
    experts.last = true;
    if (r >= 0)
        r = cpu->run(be, &op, 1, run, scratch, err);
    if (r >= 0 && memcmp(copy, whole->dst[0].data, bytes) != 0)
        r = err_set(err, ERR_INTERNAL, "other bits when its experts come in pieces");
    free(copy);
    return r;
}

static const char *run_part(const struct bed *b, struct backend *be, size_t from, size_t rows)
{
    static char text[600];
    const struct backend_ops *cpu = backend_by_name("cpu");
    struct op_run run;
    struct op op = part_of(b, from, rows, &run);
    struct err err;
    unsigned char *scratch;
    size_t bytes;
    int r;

    if (op_check(&op, &err) < 0) {
        snprintf(text, sizeof(text), "%s", err.text);
        return text;
    }
    if (!cpu->can(be, &op))
        return "the backend cannot";
    bytes = cpu->scratch_bytes(be, &op, rows);
    scratch = aligned_alloc(64, (bytes + CANARY_BYTES + 63) / 64 * 64);
    memset(scratch, CANARY, bytes + CANARY_BYTES);
    r = cpu->run(be, &op, 1, &run, scratch, &err);
    if (r >= 0 && op.kind == OP_MOE)
        r = run_pieces(be, &op, &run, scratch, &err);
    for (size_t i = 0; i < CANARY_BYTES && r >= 0; i++)
        if (scratch[bytes + i] != CANARY)
            r = err_set(&err, ERR_INTERNAL, "wrote past its scratch of %zu bytes", bytes);
    free(scratch);
    snprintf(text, sizeof(text), "%s", r < 0 ? err.text : "");
    return r < 0 ? text : NULL;
}

static void reset(struct bed *b)
{
    for (int i = 0; i < b->n_out; i++)
        memset(b->out[i].data, 0xa5, tensor_bytes(&b->out[i]));
    for (int i = 0; i < b->n_state; i++)
        memcpy(b->state[i].data, b->initial[i], tensor_bytes(&b->state[i]));
}

/* In batches of at most step rows. */
static const char *run_all(struct bed *b, struct backend *be, size_t step)
{
    const char *fault = NULL;

    reset(b);
    for (size_t from = 0; from < b->run.rows && !fault; from += step) {
        size_t left = b->run.rows - from;

        fault = run_part(b, be, from, left < step ? left : step);
    }
    return fault;
}

static double nmse_of(const struct bed *b)
{
    double error = 0, power = 1e-30;

    for (int o = 0; o < b->n_out; o++)
        for (size_t r = 0; r < b->out[o].n[1]; r++)
            for (size_t i = 0; i < b->out[o].n[0]; i++) {
                double want = b->want(b, o, r, i);
                double got = (double)tensor_f32(&b->out[o], r)[i];

                error += (got - want) * (got - want);
                power += want * want;
            }
    return error / power;
}

static int fail(const struct bed *b, const char *how, size_t step, const char *why)
{
    printf("  FAIL %s %s: %s, batches of %zu: %s\n", op_name(b->op.kind), b->what, how, step, why);
    return 1;
}

/* The outputs of the first run, to hold all others against. */
static const struct tensor *kept(const struct bed *b, int i)
{
    return i < b->n_out ? &b->out[i] : &b->state[i - b->n_out];
}

static void keep(const struct bed *b, char *to[])
{
    for (int i = 0; i < b->n_out + b->n_state; i++) {
        to[i] = realloc(to[i], tensor_bytes(kept(b, i)));
        memcpy(to[i], kept(b, i)->data, tensor_bytes(kept(b, i)));
    }
}

static bool same(const struct bed *b, char *const first[])
{
    for (int i = 0; i < b->n_out + b->n_state; i++)
        if (memcmp(first[i], kept(b, i)->data, tensor_bytes(kept(b, i))) != 0)
            return false;
    return true;
}

static int check_ways(struct bed *b, char *first[])
{
    size_t steps[] = {b->run.rows, 1, 3, 7};

    for (int i = 0; i < n_opened; i++)
        for (size_t s = 0; s < (b->whole ? 1 : sizeof(steps) / sizeof(steps[0])); s++) {
            const char *fault;

            if (s && steps[s] >= b->run.rows)
                continue;
            fault = run_all(b, opened[i].be, steps[s]);
            if (fault)
                return fail(b, opened[i].name, steps[s], fault);
            if (i == 0 && s == 0) {
                double nmse = b->want ? nmse_of(b) : 0.0;
                char text[96];

                keep(b, first);
                snprintf(text, sizeof(text), "error %.3g, bound %.3g", nmse, b->nmse);
                if (b->want && !(nmse <= b->nmse))
                    return fail(b, opened[i].name, steps[s], text);
            } else if (!same(b, first)) {
                return fail(b, opened[i].name, steps[s],
                            "other bits than the scalar tier, one "
                            "thread, one batch");
            }
        }
    return 0;
}

int bed_check(struct bed *b)
{
    char *first[BED_MAX_OUT + 2] = {NULL};
    int bad = check_ways(b, first);

    for (int i = 0; i < BED_MAX_OUT + 2; i++)
        free(first[i]);
    bed_clear(b);
    return bad;
}
