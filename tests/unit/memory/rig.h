/*
 * What tests of streaming share: a file of six layers, each of a norm, two dense
 * weights and five experts, behind a table; and walks through it that check every
 * byte.
 */
#pragma once

#include <check.h>
#include <stddef.h>

#include "daemon/memory/residency.h"
#include "tests/support/cpu_backend.h"

#define N_LAYERS  6
#define N_EXPERTS 5
#define N_USED    2
#define N_ROWS    200
#define FEW_ROWS  4               /* of a table that slots are more than 128 times of */
#define DENSE     ((size_t)20000) /* elements; 80 kB: may stream */
#define SLICE     ((size_t)3000)
#define ROW       ((size_t)500)
#define PER_LAYER 6 /* norm, two dense ones, gate, up, down */
#define N_TENSORS (1 + N_LAYERS * PER_LAYER)

struct rig {
    struct cpu_backend cpu;
    struct ledger *ledger;
    struct gguf *file;
    size_t table_rows; /* that rig_make declares; N_ROWS unless a test changes it */
};
extern struct rig rig;

void rig_set_up(void);
void rig_tear_down(void); /* nothing is held any more */

/* Ids are the tensors' numbers. */
struct residency *rig_make(const struct reader_faults *engine);
/* With the best placement in that many bytes. */
int rig_load(struct residency *r, size_t bytes, struct err *err);
size_t rig_floor(struct residency *r);

/* n elements of a tensor, the first of them number `from`, are what the file has. */
void rig_check_floats(const void *data, size_t tensor, size_t from, size_t n);
/* One batch, as the executor walks: rows, dense weights, experts. */
int rig_walk(struct residency *r, size_t token, size_t rows, struct err *err);
void rig_must_walk(struct residency *r, size_t token, size_t rows);
