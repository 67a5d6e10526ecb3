/*
 * cpu - what the drivers of the CPU's operations share.
 *
 * A driver is one file ops/NAME.c per kind of op, with one row
 *
 *     const struct driver driver_NAME = {...};
 *
 * cpu.c finds it by the names of ops.def.  Every thread of the team calls
 * run() of every op of a program, in order, and does its own part.
 *
 * by_row: the driver touches, of its row tensors, only the rows of part_rows(),
 * and needs no other thread's rows.  cpu.c then leaves out the barrier between
 * it and such a neighbour.  Every other driver finds all threads arrived when
 * it begins, and may use the scratch; within, it calls team_barrier() itself.
 *
 * Thread: TEAM (and the caller as thread 0).  Drivers cannot fail, allocate or
 * log: op_check() and cpu.c have proven everything before.
 */
#pragma once

#include "backends/backend.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/team.h"

struct part {
    const struct kernels *k;
    struct team *team;
    unsigned thread;
    unsigned n_threads;
    const struct op_run *run;
    size_t rows; /* of this op: run->rows, or n_out after OP_ROWS */
    void *scratch;
};

struct driver {
    void (*run)(const struct op *op, const struct part *p);
    size_t (*scratch_bytes)(const struct op *op, const struct kernels *k, unsigned n_threads,
                            size_t rows); /* NULL: none */
    /* Formats and kernels that op_check() cannot know of; NULL: always. */
    bool (*can)(const struct op *op, const struct kernels *k);
    bool by_row;
};

#define OP(name, n_src, help) extern const struct driver driver_##name;
#include "backends/ops.def"
#undef OP

/* The rows of an op that fall to this thread. */
static inline void part_rows(const struct part *p, size_t *ret_from, size_t *ret_to)
{
    team_share(p->rows, 1, p->thread, p->n_threads, ret_from, ret_to);
}

/* Pieces of scratch start on cache lines. */
static inline size_t scratch_round(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

/* Takes bytes at *at of the scratch; base is NULL when only the sum is asked for. */
static inline void *scratch_take(void *base, size_t *at, size_t bytes)
{
    void *p = base ? (char *)base + *at : NULL;

    *at += scratch_round(bytes);
    return p;
}
