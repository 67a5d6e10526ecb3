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
 *
 * Of a mixture some tokens are watched for what they choose (residency.h), the
 * first ones, and run in more pieces.  Those are raced as well, beside a tape of
 * such a token, which the other tape is raced with later; "ms" and "speed" are
 * those of both kinds as they come, "watched" the speed of these alone.
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

struct tape {
    struct call *calls;
    size_t n, cap;
};

static const struct backend_ops *real;
static struct tape *recorder; /* NULL: nothing is recorded */

static int tape_run(struct backend *be, const struct op *ops, size_t n, const struct op_run *run,
                    void *scratch, struct err *err)
{
    struct tape *t = recorder;
    struct call *c;

    if (t) {
        ARRAY_GROW(t->calls, t->n + 1, t->cap);
        c = &t->calls[t->n++];
        *c =
            (struct call){.ops = XNEW_ARRAY(struct op, n), .n = n, .run = *run, .scratch = scratch};
        memcpy(c->ops, ops, n * sizeof *ops);
    }
    return real->run(be, ops, n, run, scratch, err);
}

static void tape_clear(struct tape *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->calls[i].ops);
    free(t->calls);
}

static double replay_ms(struct backend *be, const struct tape *t)
{
    int64_t began_us = clock_us();
    struct err err;

    for (size_t i = 0; i < t->n; i++) {
        const struct call *c = &t->calls[i];

        if (real->run(be, c->ops, c->n, &c->run, c->scratch, &err) < 0)
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

/* In one batch: no token of decode is used up. */
static void fill(const struct loaded *l, size_t depth)
{
    int32_t *ids = XNEW_ARRAY(int32_t, depth + 1);

    for (size_t i = 0; i < depth; i++)
        ids[i] = (int32_t)((i * 37 + 11) % l->n_vocab);
    if (depth)
        must_eval(l->m, ids, depth, NULL, 0);
    free(ids);
}

static void record(struct model *m, struct tape *t)
{
    recorder = t;
    token_ms(m);
    recorder = NULL;
}

/* Turns of ours and of each tape: their medians. */
static void race(struct model *m, struct backend *be, const struct tape *const *tapes,
                 size_t n_tapes, size_t n, double *ret_ours, double *ret_tapes)
{
    double *ours = XNEW_ARRAY(double, n), *theirs = XNEW_ARRAY(double, n *n_tapes);

    for (size_t i = 0; i < n; i++) {
        ours[i] = token_ms(m);
        for (size_t k = 0; k < n_tapes; k++)
            theirs[k * n + i] = replay_ms(be, tapes[k]);
    }
    *ret_ours = median(ours, n);
    for (size_t k = 0; k < n_tapes; k++)
        ret_tapes[k] = median(theirs + k * n, n);
    free(ours);
    free(theirs);
}

static void race_all(struct model *m, struct backend *be, size_t n)
{
    const double share = (double)RESIDENCY_WATCH_TOKENS / RESIDENCY_WATCH_EVERY;
    struct tape watched = {0}, bare = {0};
    const struct tape *first[] = {&watched}, *both[] = {&bare, &watched};
    double ms, watched_ms, tape_ms, tapes_ms[2], watched_speed, slower;

    token_ms(m);
    record(m, &watched);
    race(m, be, first, 1, RESIDENCY_WATCH_TOKENS - 3, &watched_ms, &tape_ms);
    token_ms(m); /* the first that is not watched */
    record(m, &bare);
    race(m, be, both, 2, n, &ms, tapes_ms);
    watched_speed = tape_ms / watched_ms * tapes_ms[0] / tapes_ms[1];
    slower = share / watched_speed + (1 - share) * ms / tapes_ms[0];
    printf("{\"tokens\": %zu, \"ms\": %.4f, \"bypass_ms\": %.4f, \"watched\": %.4f, \"speed\": "
           "%.4f}\n",
           n, slower * tapes_ms[0], tapes_ms[0], watched_speed, 1 / slower);
    tape_clear(&watched);
    tape_clear(&bare);
}

static void run(const char *path, unsigned threads, size_t depth, size_t n)
{
    struct model_options o = {.n_ctx = depth + 8, .n_batch = MAX(depth, (size_t)64), .n_out = 1};
    struct loaded_how how = {.threads = threads, .run = tape_run};
    struct residency_stats stats;
    struct loaded l;

    real = backend_by_name("cpu");
    l = loaded_open(path, &o, &how);
    model_residency(l.m, &stats);
    if (stats.placement.mode != PLACEMENT_ALL)
        die("the model does not fit into memory");
    fill(&l, depth);
    race_all(l.m, l.cpu.be, n);
    loaded_close(&l);
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
