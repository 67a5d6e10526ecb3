/*
 * shares - how much of the machine a model uses, in one process.
 *
 *     shares [--threads N] [--rounds N] [--cpu TIER] [--depth N] [--own-time] [--profile] [--json FILE] MODEL.gguf
 *
 * --own-time takes the processor time of the threads for the time on the wall:
 * on a machine that others use too it says more, but a thread that sleeps for
 * want of work goes uncounted.
 *
 * Decode: time of a loop that only reads the bytes of all matrices, over the
 * time of the matrices alone and over that of a whole token.  Prefill of 512:
 * operations of the matrices per second, over the int8 peak of the threads,
 * for the matrices alone, those of q4_k alone, and the whole.  The parts
 * alternate, and a share is the median of the rounds' own.
 *
 * --profile tells for each kind of operation what part of the time it takes,
 * each run alone.
 *
 * The program of the model is seen from below: ops->run is wrapped, which
 * tells which matrices a token reads and can leave everything else out.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends/cpu/team.h"
#include "common/alloc.h"
#include "common/clock.h"
#include "common/median.h"
#include "tests/kernels/machine.h"
#include "tests/support/die.h"
#include "tests/support/loaded.h"

#define N_PROMPT   512
#define MAX_ROUNDS 64
#define READ_UNIT  ((size_t)4096)

/* What a run of the program does with the ops that come by. */
enum mode { WHOLE, COLLECT, MATRICES, Q4_K_ONLY, PROFILE };

struct range {
    const char *at;
    size_t bytes;
};

static struct {
    const struct backend_ops *real;
    enum mode mode;
    struct range *ranges; /* of the weights, found by COLLECT */
    size_t n_ranges, cap_ranges;
    size_t bytes;
    double ops, ops_q4_k; /* of the rows that went by */
    struct op *kept;
    size_t cap_kept;
    double seconds[OP_COUNT]; /* by PROFILE */
    const struct bench *bench;
} spy;

static double now_s(const struct bench *b);

static bool is_kept(const struct op *op)
{
    if (spy.mode != Q4_K_ONLY)
        return op->kind == OP_MATMUL;
    if (op->kind != OP_MATMUL)
        return false;
    for (unsigned i = 0; i < op->p.matmul.n_weights; i++)
        if (op->src[1 + i].fmt != format_of(FORMAT_q4_k))
            return false;
    return true;
}

static void add_ops(const struct op *op, size_t rows)
{
    enum mode mode = spy.mode;

    for (unsigned i = 0; i < op->p.matmul.n_weights; i++) {
        const struct tensor *w = &op->src[1 + i];

        spy.ops += 2.0 * (double)rows * (double)w->n[0] * (double)w->n[1];
    }
    spy.mode = Q4_K_ONLY;
    for (unsigned i = 0; i < op->p.matmul.n_weights && is_kept(op); i++)
        spy.ops_q4_k +=
            2.0 * (double)rows * (double)op->src[1 + i].n[0] * (double)op->src[1 + i].n[1];
    spy.mode = mode;
}

static void collect(const struct op *op, size_t rows)
{
    if (op->kind != OP_MATMUL)
        return;
    add_ops(op, rows);
    for (unsigned i = 0; i < op->p.matmul.n_weights; i++) {
        ARRAY_GROW(spy.ranges, spy.n_ranges + 1, spy.cap_ranges);
        spy.ranges[spy.n_ranges++] =
            (struct range){op->src[1 + i].data, tensor_bytes(&op->src[1 + i])};
        spy.bytes += tensor_bytes(&op->src[1 + i]);
    }
}

/* One op after the other, each a dispatch of its own. */
static int profile(struct backend *be, const struct op *ops, size_t n, const struct op_run *run,
                   void *scratch, struct err *err)
{
    struct op_run rows = *run;
    int r = 0;

    for (size_t i = 0; i < n && r >= 0; i++) {
        double began_s = now_s(spy.bench);

        if (rows.rows)
            r = spy.real->run(be, &ops[i], 1, &rows, scratch, err);
        if (ops[i].kind == OP_ROWS)
            rows.rows = run->n_out;
        spy.seconds[ops[i].kind] += now_s(spy.bench) - began_s;
    }
    return r;
}

static int spy_run(struct backend *be, const struct op *ops, size_t n, const struct op_run *run,
                   void *scratch, struct err *err)
{
    struct op_run rows = *run;
    size_t kept = 0;

    if (spy.mode == WHOLE)
        return spy.real->run(be, ops, n, run, scratch, err);
    if (spy.mode == PROFILE)
        return profile(be, ops, n, run, scratch, err);
    ARRAY_GROW(spy.kept, n, spy.cap_kept);
    for (size_t i = 0; i < n; i++) {
        if (ops[i].kind == OP_ROWS)
            rows.rows = run->n_out;
        if (spy.mode == COLLECT)
            collect(&ops[i], rows.rows);
        else if (is_kept(&ops[i]))
            spy.kept[kept++] = ops[i];
    }
    if (spy.mode == COLLECT)
        return spy.real->run(be, ops, n, run, scratch, err);
    /* Without OP_ROWS a group of the head would run all rows; the head is one matrix for the last row. */
    return kept && rows.rows ? spy.real->run(be, spy.kept, kept, &rows, scratch, err) : 0;
}

/* -- the loop that only reads ------------------------------------------------------------- */

static void read_share(void *arg, unsigned thread)
{
    const struct team *t = arg;
    static volatile uint64_t sink;

    for (size_t i = 0; i < spy.n_ranges; i++) {
        size_t from, to;

        team_share(spy.ranges[i].bytes, READ_UNIT, thread, team_threads(t), &from, &to);
        sink = machine_read(spy.ranges[i].at + from, to - from);
    }
    (void)sink;
}

/* -- one measured thing ---------------------------------------------------------------------- */

struct bench {
    struct model *m;
    struct team *team; /* of the read loop */
    const struct backend_ops *ops;
    int32_t ids[N_PROMPT];
    unsigned threads, rounds;
    size_t tokens; /* of decode in one measurement */
    size_t depth;  /* of the context at the start of each */
    bool own_time;
};

static double now_s(const struct bench *b)
{
    struct timespec t;

    if (!b->own_time)
        return (double)clock_us() * 1e-6;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return ((double)t.tv_sec + (double)t.tv_nsec * 1e-9) / b->threads;
}

/* Seconds of n tokens in batches of `batch`. */
static double eval(struct bench *b, enum mode mode, size_t n, size_t batch)
{
    const int32_t last = (int32_t)batch - 1;
    double began_s;

    sequence_truncate(model_sequence(b->m), b->depth);
    spy.mode = mode;
    began_s = now_s(b);
    for (size_t i = 0; i < n; i += batch)
        must_eval(b->m, b->ids + i, batch, &last, 1);
    return now_s(b) - began_s;
}

static void fill(struct bench *b)
{
    while (sequence_length(model_sequence(b->m)) < b->depth) {
        size_t n = MIN(b->depth - sequence_length(model_sequence(b->m)), (size_t)N_PROMPT);

        must_eval(b->m, b->ids, n, NULL, 0);
    }
}

static double read_all(struct bench *b, size_t times)
{
    double began_s = now_s(b);

    for (size_t i = 0; i < times; i++)
        team_run(b->team, read_share, b->team);
    return now_s(b) - began_s;
}

struct line {
    const char *name, *of;
    double share[MAX_ROUNDS], rate[MAX_ROUNDS];
    const char *unit;
};

static void print(const struct bench *b, struct line *l, FILE *json, bool last)
{
    double share = median(l->share, b->rounds), rate = median(l->rate, b->rounds);

    printf("%-28s %u thread%s %9.1f %s, %5.1f %% of %s (%.1f ... %.1f)\n", l->name, b->threads,
           b->threads == 1 ? " " : "s", rate, l->unit, 100 * share, l->of, 100 * l->share[0],
           100 * l->share[b->rounds - 1]);
    if (json)
        fprintf(json,
                "  {\"what\": \"%s\", \"threads\": %u, \"rate\": %.2f, \"unit\": \"%s\", "
                "\"share\": %.4f, \"of\": \"%s\", \"spread\": %.4f}%s\n",
                l->name, b->threads, rate, l->unit, share, l->of,
                (l->share[b->rounds - 1] - l->share[0]) / share, last ? "" : ",");
}

static void decode(struct bench *b, FILE *json)
{
    struct line matrices = {"decode's matrices", "a read loop", .unit = "GB/s"};
    struct line whole = {"decode", "a read loop", .unit = "t/s"};
    size_t n;

    spy.bytes = spy.n_ranges = 0;
    eval(b, COLLECT, 1, 1);
    n = b->tokens;
    for (unsigned i = 0; i < b->rounds; i++) {
        double read = read_all(b, n), mats = eval(b, MATRICES, n, 1);
        double all = eval(b, WHOLE, n, 1);

        read = (read + read_all(b, n)) / 2;
        matrices.share[i] = read / mats;
        matrices.rate[i] = (double)(n * spy.bytes) / mats * 1e-9;
        whole.share[i] = read / all;
        whole.rate[i] = (double)n / all;
    }
    print(b, &matrices, json, false);
    print(b, &whole, json, false);
}

static void print_profile(struct bench *b, const char *what, size_t n, size_t batch)
{
    double sum = 0;

    memset(spy.seconds, 0, sizeof spy.seconds);
    for (unsigned i = 0; i < b->rounds; i++)
        eval(b, PROFILE, n, batch);
    for (int i = 0; i < OP_COUNT; i++)
        sum += spy.seconds[i];
    printf("%s, %u thread%s, depth %zu:", what, b->threads, b->threads == 1 ? "" : "s", b->depth);
    for (int i = 0; i < OP_COUNT; i++)
        if (spy.seconds[i] > 0)
            printf(" %s %.1f %%", op_name(i), 100 * spy.seconds[i] / sum);
    putchar('\n');
}

static double peak(const struct bench *b)
{
    double int8, f32;

    machine_burst(&int8, &f32);
    return int8 * 1e9 * b->threads;
}

static void prefill(struct bench *b, FILE *json)
{
    struct line q4_k = {"prefill's q4_k matrices", "the int8 peak", .unit = "Gop/s"};
    struct line matrices = {"prefill's matrices", "the int8 peak", .unit = "Gop/s"};
    struct line whole = {"prefill 512", "the int8 peak", .unit = "t/s"};

    spy.ops = spy.ops_q4_k = 0;
    eval(b, COLLECT, N_PROMPT, N_PROMPT);
    for (unsigned i = 0; i < b->rounds; i++) {
        double p = peak(b), part = eval(b, Q4_K_ONLY, N_PROMPT, N_PROMPT);
        double mats = eval(b, MATRICES, N_PROMPT, N_PROMPT);
        double all = eval(b, WHOLE, N_PROMPT, N_PROMPT);

        p = (p + peak(b)) / 2;
        q4_k.share[i] = spy.ops_q4_k / part / p;
        q4_k.rate[i] = spy.ops_q4_k / part * 1e-9;
        matrices.share[i] = spy.ops / mats / p;
        matrices.rate[i] = spy.ops / mats * 1e-9;
        whole.share[i] = spy.ops / all / p;
        whole.rate[i] = N_PROMPT / all;
    }
    if (spy.ops_q4_k > 0)
        print(b, &q4_k, json, false);
    print(b, &matrices, json, false);
    print(b, &whole, json, true);
}

/* Letters of a text would do as well: the values of a random model depend on neither. */
static void run(struct bench *b, const char *path, const char *tier, bool profiled, FILE *json)
{
    struct model_options o = {.n_ctx = b->depth + N_PROMPT, .n_batch = N_PROMPT, .n_out = 1};
    struct loaded_how how = {.threads = b->threads, .tier = tier, .run = spy_run};
    struct err err = {0};
    struct loaded l;

    spy.real = backend_by_name("cpu");
    spy.bench = b;
    l = loaded_open(path, &o, &how);
    b->m = l.m;
    if (team_create(b->threads, &b->team, &err) < 0)
        die("%s", err.text);
    for (size_t i = 0; i < N_PROMPT; i++)
        b->ids[i] = (int32_t)((i * 7919 + 13) % l.n_vocab);
    fill(b);
    eval(b, WHOLE, N_PROMPT, N_PROMPT);
    if (profiled) {
        print_profile(b, "decode", b->tokens, 1);
        print_profile(b, "prefill 512", N_PROMPT, N_PROMPT);
    } else {
        decode(b, json);
        prefill(b, json);
    }
    team_destroy(b->team);
    loaded_close(&l);
    free(spy.ranges);
    free(spy.kept);
}

int main(int argc, char **argv)
{
    struct bench b = {.threads = 1, .rounds = 7, .tokens = 16};
    const char *model = NULL, *tier = NULL, *out = NULL;
    bool profiled = false;
    FILE *json = NULL;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
            b.threads = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            b.rounds = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--cpu") == 0 && i + 1 < argc)
            tier = argv[++i];
        else if (strcmp(argv[i], "--depth") == 0 && i + 1 < argc)
            b.depth = strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--profile") == 0)
            profiled = true;
        else if (strcmp(argv[i], "--own-time") == 0)
            b.own_time = true;
        else if (strcmp(argv[i], "--json") == 0 && i + 1 < argc)
            out = argv[++i];
        else
            model = argv[i];
    }
    if (!model || model[0] == '-' || b.rounds < 1 || b.rounds > MAX_ROUNDS) {
        fputs("usage: shares [--threads N] [--rounds N] [--cpu TIER] [--depth N] [--own-time] "
              "[--profile] [--json FILE] MODEL.gguf\n",
              stderr);
        return 2;
    }
    if (out) {
        json = fopen(out, "w");
        if (!json)
            die("the file of --json cannot be written");
        fputs("[\n", json);
    }
    run(&b, model, tier, profiled, json);
    if (json) {
        fputs("]\n", json);
        fclose(json);
    }
    return 0;
}
