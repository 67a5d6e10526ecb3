/*
 * recorder - a device that computes nothing: it keeps what it is given, says
 * no when asked to, and sets a cancel flag after so many runs.
 */
#pragma once

#include <stdatomic.h>

#include "backends/backend.h"

#define RECORDER_MAX 64

struct backend {
    enum op_kind refuse; /* can() says no to it; OP_COUNT: to none */
    size_t scratch_rows; /* scratch_bytes() is largest at so many rows */
    int fail_run;        /* the run() that fails; −1: none */
    int cancel_after;    /* runs; −1: never */
    _Atomic bool cancel;
    int n_runs;
    size_t rows[RECORDER_MAX];  /* of each run */
    size_t n_ops[RECORDER_MAX]; /* of each run */
    int layer[RECORDER_MAX];
};

extern const struct backend_ops recorder_ops;
