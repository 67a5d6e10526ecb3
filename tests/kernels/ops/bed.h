/*
 * bed - one op with its tensors, as check_ops runs it in many ways.
 *
 * A bed is made for a number of rows by one function of cases.c, which also
 * says what the op should give, in double precision and without any code of
 * the backends but the decoders of formats.  bed_check() then runs it on every
 * tier, with one, two and three threads, whole and cut into batches, and wants
 * the same bits each time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/backend.h"

#define BED_MAX_OUT 3
#define BED_MAX_PTR 64

struct bed;

/* Element i of row r of output o. */
typedef double bed_want_fn(const struct bed *b, int o, size_t r, size_t i);

struct bed {
    char what[128];
    struct op op;
    struct op_run run;
    unsigned row_src;               /* bit i: src[i] has a row for each row of the batch */
    bool whole;                     /* the batch cannot be cut */
    struct tensor out[BED_MAX_OUT]; /* what is compared; n_out of them */
    int n_out;
    struct tensor
        state[2]; /* what an op changes in place: put back before each run, and compared after */
    void *initial[2];
    int n_state;
    bool out_is_dst; /* out[i] = dst[i], by rows; else they stay in place */
    double nmse;     /* bound; negative: no reference */
    bed_want_fn *want;
    double *truth; /* whatever want() keeps */
    void *ptr[BED_MAX_PTR];
    int n_ptr;
};

void *bed_alloc(struct bed *b, size_t bytes);
void bed_clear(struct bed *b);

/* A tensor of memory of its own; random floats where it is f32. */
struct tensor bed_tensor(struct bed *b, const struct format *f, size_t n0, size_t n1, size_t n2,
                         size_t n3);
struct tensor bed_f32(struct bed *b, size_t n0, size_t n1);
/* Random floats, encoded. */
struct tensor bed_weights(struct bed *b, const struct format *f, size_t n0, size_t n1, size_t n2);
/* Rows of activations made of random floats by the scalar twin; plain floats for ACT_F32. */
struct tensor bed_act(struct bed *b, enum act_kind act, size_t n, size_t rows);
/* dst[i] is an output. */
void bed_out(struct bed *b, int i, size_t n0, size_t rows);

/* A state of random floats. */
struct tensor bed_state(struct bed *b, size_t n0, size_t n1, size_t n2, size_t n3);

/* Decoders of the reference. */
double bed_weight(const struct tensor *w, size_t stack, size_t row, size_t i);
double bed_activation(enum act_kind act, const struct tensor *t, size_t row, size_t i);
/* Element i of source s: of its row r, or of a vector. */
double bed_src(const struct bed *b, int s, size_t r, size_t i);
double bed_vec(const struct bed *b, int s, size_t i);
double bed_sigmoid(double x);

uint64_t bed_random(void);
float bed_normal(void);
void bed_seed(uint64_t seed);

/* Runs it every way; the number of failures, after telling the first. */
int bed_check(struct bed *b);
/*
 * Opens a backend for each tier and number of threads; their number.  A tier:
 * that one and scalar; threads: that many, and one for scalar.
 */
int bed_open(const char *tier, unsigned threads);
void bed_close(void);
/* The i-th of them, for programs of more than one op. */
struct backend *bed_backend(int i, const char **ret_name);

/* -- cases: all beds of an op; the number of failures ------------------------------ */

#define OP(name, n_src, help) int cases_##name(int *ret_run);
#include "backends/ops.def"
#undef OP
int cases_program(int *ret_run);
