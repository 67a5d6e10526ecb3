/*
 * backend - the contract of a device that computes.
 *
 * How to add one: a folder backends/NAME/ with NAME.c that defines
 *
 *     const struct backend_ops backend_NAME = {...};
 *
 * (the build collects it).  Libraries by dlopen, so one binary runs everywhere.
 * Grow it one op at a time: can() says no until tests/kernels/check_ops says
 * yes.  The ledger, residency and planner never ask which backend it is.
 *
 * Thread: ENGINE, but for probe (main).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "backends/op.h"
#include "common/err.h"

#define BACKEND_NAME_MAX 64

struct device {
    const struct backend_ops *ops;
    char name[BACKEND_NAME_MAX]; /* "cpu", "cuda0" */
    char detail[128];            /* for people: "AMD EPYC, avx512, 2 threads" */
    size_t memory_bytes;         /* 0: host memory */
    unsigned threads;            /* that compute at once, of a host */
};

struct backend_options {
    unsigned threads; /* 0: physical cores of the affinity mask */
    const char *cpu;  /* "auto", or a tier's name as a cap */
};

struct backend;

/* Memory of a device.  For host devices, data is a pointer to it. */
struct region {
    void *data;
    size_t bytes; /* true size, as the ledger counts it */
};

struct backend_ops {
    const char *name;
    /* Writes up to cap devices; returns how many there are (0 is fine). */
    int (*probe)(struct device *ret_list, int cap, struct err *err);
    int (*open)(const struct device *dev, const struct backend_options *opt,
                struct backend **ret_be, struct err *err);
    void (*close)(struct backend *be);
    /* Zeroed memory; huge pages where large.  The ledger has granted alloc_bytes(bytes) before. */
    int (*alloc)(struct backend *be, size_t bytes, struct region *ret_region, struct err *err);
    void (*free)(struct backend *be, struct region *r);
    size_t (*alloc_bytes)(const struct backend *be, size_t bytes);
    /* Can this device run the op with these formats and parameters?  Data pointers may be NULL. */
    bool (*can)(const struct backend *be, const struct op *op);
    /* Scratch for one op at op_run.rows = rows, beyond its tensors. */
    size_t (*scratch_bytes)(const struct backend *be, const struct op *op, size_t rows);
    /*
     * Runs n ops in order, one team dispatch.  scratch has at least the largest
     * scratch_bytes of them.  Cannot fail on the CPU once op_check() has passed.
     */
    int (*run)(struct backend *be, const struct op *ops, size_t n, const struct op_run *run,
               void *scratch, struct err *err);
    /* For people and plans: tier, threads. */
    void (*describe)(const struct backend *be, struct device *ret_dev);
};

/* All devices of all backends, CPU first.  Returns how many. */
int backend_probe(struct device *ret_list, int cap, struct err *err);
const struct backend_ops *backend_by_name(const char *name); /* NULL when unknown */
