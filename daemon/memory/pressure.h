/*
 * pressure - gives memory back when the machine runs short of it.
 *
 * The kernel says how long tasks waited for memory (PSI): memory.pressure of
 * this process's own cgroup (v2), else /proc/pressure/memory.  The decision is
 * pure: stalls lower the effective budget in steps, never below the floor of
 * what runs; calm gives it back more slowly than it was taken.
 *
 * Threads: pressure_open and pressure_sample any (a short read of /proc or
 * /sys/fs/cgroup, never the disk); pressure_decide any.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

struct pressure_sample {
    double some_avg10; /* percent of the last 10 s in which some task waited for memory */
    double full_avg10; /* … in which all did */
    uint64_t some_us;  /* since boot */
    uint64_t full_us;
    double
        available; /* share of the machine's memory; −1: no matter.  Tasks that wait within a limit of
                         their own are nothing that others could help: the machine must be short too. */
};

struct pressure_source {
    char path[512];
    char meminfo[512]; /* "" when path is the own cgroup's */
};

/* root: "" for the real one; a directory holding proc/ and sys/ for tests.  ERR_UNSUPPORTED where there is no PSI. */
int pressure_open(const char *root, struct pressure_source *ret, struct err *err);
int pressure_sample(const struct pressure_source *s, struct pressure_sample *ret, struct err *err);
/* The text of such a file; ERR_FORMAT for anything else. */
int pressure_parse(const char *text, struct pressure_sample *ret, struct err *err);

#define PRESSURE_PERIOD_MS 1000 /* how often to sample */

/* {0} at start. */
struct pressure_state {
    size_t lowered_bytes;  /* below the budget that was set */
    int64_t changed_ms;    /* last step */
    int64_t calm_since_ms; /* 0: not calm */
    uint64_t some_us, full_us;
    int64_t sampled_ms; /* 0: never */
};

struct pressure_input {
    struct pressure_sample sample;
    int64_t now_ms;
    size_t budget_bytes; /* that was set */
    size_t used_bytes;
    size_t floor_bytes; /* least that what runs needs */
};

enum pressure_verdict { PRESSURE_STAY, PRESSURE_LOWER, PRESSURE_GIVE_BACK };

struct pressure_decision {
    enum pressure_verdict verdict;
    size_t effective_bytes; /* the budget to use from now on; floor ≤ it ≤ budget */
    double stalled;         /* percent of the time since the last sample, for the log line */
};

/* Takes one sample into account. */
void pressure_decide(struct pressure_state *s, const struct pressure_input *in,
                     struct pressure_decision *ret);
