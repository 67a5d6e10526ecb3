/*
 * cpu_backend - the CPU as a device, for tests that compute.
 */
#pragma once

#include "backends/backend.h"

struct cpu_backend {
    const struct backend_ops *ops;
    struct backend *be;
};

/* tier: a cap ("scalar"), or NULL: RNBD_TEST_CPU, else all of them.  Ends the process when there is no CPU backend. */
struct cpu_backend cpu_backend_open(unsigned threads, const char *tier);
void cpu_backend_close(struct cpu_backend *c);
