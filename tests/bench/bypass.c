/*
 * What residency costs where everything fits, in one process:
 *
 *     bypass [--threads 2] [--tokens 100] [--depth 64] MODEL.gguf
 *
 * One token of decode is recorded below the program: its ops with the addresses
 * of their weights in them.  Then tokens at the same position take turns, one
 * through model_eval, one by giving the recorded ops to the device again, which
 * passes by pins, placement, looks at the budget and the program alike.  The
 * medians of both are printed as JSON; "speed" is ours over that of the bypass.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/clock.h"
#include "common/median.h"
#include "common/thread.h"
#include "tests/support/die.h"
#include "tests/support/loaded.h"

/* One call of the device. */
struct call {
    struct op *ops;
    size_t n;
    struct op_run run;
    void *scratch;
};

static struct {
    const struct backend_ops *real;
    struct call *calls;
    size_t n, cap;
    bool recording;
} tape;

static int tape_run(struct backend *be, const struct op *ops, size_t n, const struct op_run *run,
                    void *scratch, struct err *err)
{
    struct call *c;

    if (tape.recording) {
        ARRAY_GROW(tape.calls, tape.n + 1, tape.cap);
        c = &tape.calls[tape.n++];
        *c =
            (struct call){.ops = XNEW_ARRAY(struct op, n), .n = n, .run = *run, .scratch = scratch};
        memcpy(c->ops, ops, n * sizeof *ops);
    }
    return tape.real->run(be, ops, n, run, scratch, err);
}

static double replay_ms(struct backend *be)
{
    int64_t began_us = clock_us();
    struct err err;

    for (size_t i = 0; i < tape.n; i++) {
        const struct call *c = &tape.calls[i];

        if (tape.real->run(be, c->ops, c->n, &c->run, c->scratch, &err) < 0)
            die("%s", err.text);
    }
    return (double)(clock_us() - began_us) / 1000;
}

/* At the position where the sequence ends; it ends there again afterwards. */
static double token_ms(struct model *m)
{
    static const int32_t id = 7, row = 0; /* the tape keeps their addresses */
    size_t at = sequence_length(model_sequence(m));
    int64_t began_us = clock_us();
    double ms;

    must_eval(m, &id, 1, &row, 1);
    ms = (double)(clock_us() - began_us) / 1000;
    sequence_truncate(model_sequence(m), at);
    return ms;
}

static void fill(const struct loaded *l, size_t depth)
{
    for (size_t i = 0; i < depth; i++) {
        int32_t id = (int32_t)((i * 37 + 11) % l->n_vocab);

        must_eval(l->m, &id, 1, NULL, 0);
    }
}

static void race(struct model *m, struct backend *be, size_t n)
{
    double *ours = XNEW_ARRAY(double, n), *bypass = XNEW_ARRAY(double, n), mine, theirs;

    token_ms(m);
    tape.recording = true;
    token_ms(m);
    tape.recording = false;
    for (size_t i = 0; i < n; i++) {
        ours[i] = token_ms(m);
        bypass[i] = replay_ms(be);
    }
    mine = median(ours, n);
    theirs = median(bypass, n);
    printf("{\"tokens\": %zu, \"ms\": %.4f, \"bypass_ms\": %.4f, \"speed\": %.4f}\n", n, mine,
           theirs, theirs / mine);
    free(ours);
    free(bypass);
}

static void run(const char *path, unsigned threads, size_t depth, size_t n)
{
    struct model_options o = {.n_ctx = depth + 8, .n_batch = 64, .n_out = 1};
    struct loaded_how how = {.threads = threads, .run = tape_run};
    struct residency_stats stats;
    struct loaded l;

    tape.real = backend_by_name("cpu");
    l = loaded_open(path, &o, &how);
    model_residency(l.m, &stats);
    if (stats.placement.mode != PLACEMENT_ALL)
        die("the model does not fit into memory");
    fill(&l, depth);
    race(l.m, l.cpu.be, n);
    loaded_close(&l);
    for (size_t i = 0; i < tape.n; i++)
        free(tape.calls[i].ops);
    free(tape.calls);
}

int main(int argc, char **argv)
{
    size_t threads = 2, n = 100, depth = 64;
    const char *path = NULL;

    thread_take_role(THREAD_ENGINE, "bypass");
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;

        if (strcmp(argv[i], "--threads") == 0 && more)
            threads = strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--tokens") == 0 && more)
            n = strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--depth") == 0 && more)
            depth = strtoul(argv[++i], NULL, 10);
        else
            path = argv[i];
    }
    if (!path || path[0] == '-' || !threads || !n) {
        fputs("usage: bypass [--threads 2] [--tokens 100] [--depth 64] MODEL.gguf\n", stderr);
        return 2;
    }
    run(path, (unsigned)threads, depth, n);
    return 0;
}
