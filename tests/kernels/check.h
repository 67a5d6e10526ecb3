/*
 * check - what the checkers of kernels share.
 *
 * Rows come from gen/kernels.def: a kernel is checked the moment its file
 * exists.  There is one checker per OP, check_OP(), named by the list below
 * and called with each row of that op; an op without one does not link.  To
 * add an op: its type in union kernel, its twin's name in TWIN_OF_op, its
 * checker in a check_*.c.
 *
 * A checker compares the row's kernel bit for bit with the scalar twin, and
 * the scalar twin with a computation in double.  It returns the number of
 * comparisons that failed, after check_fail() has told the first of them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels.h"

union kernel {
    void (*any)(void);
    quantize_fn *quantize;
    matvec_fn *matvec;
    gemm_fn *gemm;
    pack_fn *pack;
    attn_fn *attn;
    attn_merge_fn *attn_merge;
    encode_fn *encode;
    rmsnorm_fn *rmsnorm;
    layernorm_fn *layernorm;
    add_fn *add;
    mul_fn *mul;
    scale_fn *scale;
    silu_mul_fn *silu_mul;
    gelu_mul_fn *gelu_mul;
    clamped_mul_fn *clamped_mul;
    softcap_fn *softcap;
    sigmoid_mul_fn *sigmoid_mul;
    softplus_fn *softplus;
    exp_mul_fn *exp_mul;
    conv_fn *conv;
    delta_fn *delta;
    wkv_fn *wkv;
    ssm_fn *ssm;
    softmax_fn *softmax;
    rope_fn *rope;
    rope_neox_fn *rope_neox;
};

struct row {
    const char *op;
    const char *fmt;
    const char *tier;
    unsigned tier_bit;
    union kernel kernel;
    union kernel twin;
    int (*check)(const struct row *r);
};

bool row_is_twin(const struct row *r);
extern const struct row check_rows[];
extern const size_t check_n_rows;

/* -- random numbers: splitmix64, one stream per row, so that --only changes nothing ------ */

/*
 * Of the many shapes of a matrix only one in check_thin is tried, and no row of
 * more than 4096: for an emulator, which takes minutes for all.  1: all.
 */
extern unsigned check_thin;

void check_seed(uint64_t seed);
uint64_t check_random(void);
float check_normal(void); /* mean 0, deviation 1 */

/* -- memory between unreadable pages --------------------------------------------------- */

struct guard {
    char *map;
    size_t map_bytes;
    char *page;      /* first usable byte */
    size_t capacity; /* whole pages */
};

void guard_init(struct guard *g, size_t bytes);
void guard_clear(struct guard *g);
void *guard_end(const struct guard *g, size_t bytes); /* its last byte is the last readable one */
void *guard_begin(const struct guard *g,
                  size_t bytes); /* its first byte is the first readable one */

/* -- outcomes -------------------------------------------------------------------------- */

/* Tells one failure of the row (the first few only) and counts it. */
int check_fail(const struct row *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Same bits, or both NaN; index of the first that differ, or n. */
size_t check_same(const float *a, const float *b, size_t n);

/* -- inputs ---------------------------------------------------------------------------- */

enum fill {
    FILL_RANDOM,
    FILL_ONES,     /* all bits of the weights, sane scales */
    FILL_ZEROS,    /* no bits */
    FILL_80,       /* bytes 0x80 */
    FILL_7F,       /* bytes 0x7f */
    FILL_EXTREME,  /* random, activations all ±127 */
    FILL_ZERO_D,   /* random, scale zero */
    FILL_TINY_D,   /* random, subnormal scale */
    FILL_HUGE_D,   /* random, largest finite scale */
    FILL_NAN_D,    /* random, a scale that is NaN or infinite here and there */
    FILL_ANYTHING, /* every byte random, scales too */
    FILL_COUNT
};
const char *fill_name(enum fill how);

/* n_blocks blocks of weights. */
void fill_weights(const struct format *f, enum fill how, void *blocks, size_t n_blocks);
/* One canonical row of n activations. */
void fill_act(enum act_kind kind, enum fill how, void *row, size_t n);
/* The activations as numbers. */
void act_to_f64(enum act_kind kind, const void *row, size_t n, double *out);

/* -- checkers, one per op --------------------------------------------------------------- */

int check_quantize(const struct row *r);
int check_matvec(const struct row *r);
int check_gemm(const struct row *r);
int check_pack(const struct row *r);
int check_attn(const struct row *r);
int check_attn_merge(const struct row *r);
int check_encode(const struct row *r);
int check_rmsnorm(const struct row *r);
int check_layernorm(const struct row *r);
int check_add(const struct row *r);
int check_mul(const struct row *r);
int check_scale(const struct row *r);
int check_silu_mul(const struct row *r);
int check_gelu_mul(const struct row *r);
int check_clamped_mul(const struct row *r);
int check_softcap(const struct row *r);
int check_sigmoid_mul(const struct row *r);
int check_softplus(const struct row *r);
int check_exp_mul(const struct row *r);
int check_conv(const struct row *r);
int check_delta(const struct row *r);
int check_wkv(const struct row *r);
int check_ssm(const struct row *r);
int check_softmax(const struct row *r);
int check_rope(const struct row *r);
int check_rope_neox(const struct row *r);

/* -- the list --------------------------------------------------------------------------- */

/* Prints how many formats each tier has of each op and names what is missing; returns how many. */
size_t count_kernels(void);

/* -- speed ------------------------------------------------------------------------------ */

/* Prints ns, GB/s, Gop/s, × scalar and the share of what the machine can do for the row. */
void bench_row(const struct row *r, unsigned threads);
void bench_machine(unsigned threads);
