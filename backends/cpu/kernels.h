/*
 * kernels - the types of all CPU kernels, and the selection for this machine.
 *
 * A kernel is one plain function op_FORMAT_TIER in TIER/op_FORMAT.c.  One line
 * above it declares it with its type and is what the build collects:
 *
 *     KERNEL(matvec, q4_k, avx2);
 *
 * (alone on a line, at column 0).  kernels.c takes, for each op and format,
 * the widest tier that this machine and the "cpu" setting allow.  A row
 * without a scalar twin does not compile.
 *
 * Every tier gives the bits of the scalar twin; every batch width gives the
 * bits of one column at a time.  The fixed orders:
 *
 *   quantised   one f32 accumulator per output, blocks ascending, inside a
 *               block exact integers, d of the activation last:
 *                 no minimum:  acc = fma(d_a, d_w * (float)isum, acc)
 *                 minimum:     acc = fma(d_a, fma(d_w, (float)isum, -(dmin_w * (float)msum)), acc)
 *                 q4_1, q5_1:  acc = fma(d_a, fma(d_w, (float)isum, m_w * (float)asum), acc)
 *               (the block is the weight block, or the activation block where that is the smaller one)
 *   f32 kinds   sixteen partial sums by index mod 16, each by fma, ascending;
 *               lanes without an element are left alone; then kernels_tree16().
 *
 * Kernels cannot fail, never allocate, touch no byte outside their arguments,
 * and run on TEAM threads (or any one thread).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/formats/act.h"
#include "backends/formats/format.h"

/* -- matrix kernels ------------------------------------------------------------ */

/* One row of n floats → the canonical row of its act kind (act.h). */
typedef void quantize_fn(const float *x, size_t n, void *out);

/*
 * y[c * y_stride + r] = Σ_k w[r][k] * act[c][k], for rows [0, rows) and cols 1…4.
 * Strides of acts in bytes, of y in floats.  n = elements of a row.
 */
struct matvec {
    const void *w;
    size_t row_bytes;
    size_t rows;
    size_t n;
    const void *act; /* canonical rows */
    size_t act_stride;
    size_t cols;
    float *y;
    size_t y_stride;
};
typedef void matvec_fn(const struct matvec *m);

/*
 * The same for any number of columns, weights decoded once and reused.  When
 * the tier has a pack kernel for the act kind, packed holds ceil(cols /
 * tile_cols) tiles as that kernel wrote them; else acts are canonical rows at
 * act, act_stride apart.
 */
struct gemm {
    const void *w;
    size_t row_bytes;
    size_t rows;
    size_t n;
    const void *act;
    size_t act_stride;
    const void *packed;
    size_t cols;
    float *y;
    size_t y_stride;
    void *scratch; /* KERNELS_SCRATCH_BYTES(n), 64-byte aligned, the thread's own */
};
typedef void gemm_fn(const struct gemm *g);

/* Panels of 16 rows × n as int8 + scales, with room to spare; kernels assert that it suffices. */
#define KERNELS_SCRATCH_BYTES(n) ((size_t)(n)*16 * 8 + ((size_t)256 << 10))

/*
 * Canonical rows of cols ≤ tile_cols columns → one tile of pack_bytes(n);
 * missing columns are zero.  The kernel is named by the layout (pack_q8_256_avx512)
 * and understood by the gemms of its own tier alone.
 */
#define KERNELS_TILE_COLS 12

struct pack {
    const void *act;
    size_t act_stride;
    size_t n;
    size_t cols;
    void *out;
};
typedef void pack_fn(const struct pack *p);

/* -- f32 kernels (format "f32" in their name) ------------------------------------ */

/* y = x / sqrt(mean(x²) + eps) * w; w may be NULL (then 1).  Sum of squares in sixteen partials. */
typedef void rmsnorm_fn(const float *x, const float *w, float eps, float *y, size_t n);
/*
 * y = (x - mean) / sqrt(mean((x - mean)²) + eps) * w + b; w and b may be NULL
 * (1 and 0).  Both sums in sixteen partials, the second by fma.
 */
typedef void layernorm_fn(const float *x, const float *w, const float *b, float eps, float *y,
                          size_t n);
typedef void add_fn(const float *a, const float *b, float *y, size_t n); /* y may be a or b */
typedef void mul_fn(const float *a, const float *b, float *y, size_t n);
typedef void scale_fn(const float *x, float s, float *y, size_t n);
typedef void silu_mul_fn(const float *gate, const float *up, float *y,
                         size_t n); /* silu(gate) * up */
/* gelu(gate) * up, tanh form; up may be NULL: gelu(gate). */
typedef void gelu_mul_fn(const float *gate, const float *up, float *y, size_t n);
/* clamped(gate) * (clamp(up) + 1), of math.h: gpt-oss's SwiGLU. */
typedef void clamped_mul_fn(const float *gate, const float *up, float *y, size_t n);
typedef void softcap_fn(const float *x, float c, float *y, size_t n); /* tanh(x / c) * c */
typedef void sigmoid_mul_fn(const float *gate, const float *up, float *y, size_t n);
/* ln(1 + e^(x + bias)); bias may be NULL. */
typedef void softplus_fn(const float *x, const float *bias, float *y, size_t n);
typedef void exp_mul_fn(const float *a, const float *b, float *y, size_t n); /* e^(a b) */
typedef void softmax_fn(const float *x, float *y,
                        size_t n); /* max, exp, sum of sixteen partials, divide */

/*
 * Rotates x[0 … n_dims) of one head by cos/sin pairs cs[n_dims / 2][2].  rope
 * pairs neighbours (2i, 2i+1); rope_neox pairs (i, i + n_dims/2).  Two mul and
 * one fma each: a' = fma(a, c, -(b * s)), b' = fma(a, s, b * c).
 */
typedef void rope_fn(float *x, const float *cs, size_t n_dims);
typedef void rope_neox_fn(float *x, const float *cs, size_t n_dims);

/*
 * Attention over one chunk of keys for the n_q query heads that share a kv
 * head (and, in prefill, for several query rows).  A chunk is KERNELS_CHUNK
 * absolute positions; its partial result stands alone:
 *   m = max_j s_j,  l = Σ_j exp(s_j - m) (sixteen partials by j mod 16),
 *   o[d] = Σ_j exp(s_j - m) * v[j][d] (by fma, j ascending),
 * with s_j = scale * Σ_d q[d] * k[j][d] (sixteen partials by d mod 16), or with
 * soft cap c: c * tanh(s_j / c).  Keys outside [from, to) are not there.
 * Chunks are merged in order by attn_merge.
 */
#define KERNELS_CHUNK    256
#define KERNELS_HEAD_MAX 1024 /* of head_dim and v_dim */

struct attn_span {
    uint32_t from, to;
};

struct attn {
    const float *q; /* [n_q][head_dim] of one row */
    size_t n_q;
    size_t q_stride; /* floats from head to head */
    const void *k;   /* first key of the chunk, of this kv head */
    const void *v;
    size_t k_stride; /* bytes from key to key */
    size_t v_stride;
    size_t from; /* keys of the chunk that count, relative to its start */
    size_t to;
    const struct attn_span *spans; /* [n_q] of each query alone; NULL: from, to for all */
    size_t head_dim;
    size_t v_dim;
    float scale;
    float soft_cap; /* 0: none */
    float *m;       /* [n_q] */
    float *l;       /* [n_q] */
    float *o;       /* [n_q][v_dim] */
};
typedef void attn_fn(const struct attn *a);

/*
 * Merges a chunk (m, l, o) into the running (acc_m, acc_l, acc_o):
 *   M = max(acc_m, m), a = exp(acc_m - M), b = exp(m - M),
 *   acc_l = fma(acc_l, a, l * b), acc_o[d] = fma(acc_o[d], a, o[d] * b).
 * The first chunk is copied.
 */
typedef void attn_merge_fn(float *acc_m, float *acc_l, float *acc_o, float m, float l,
                           const float *o, size_t v_dim);

/*
 * One row of a short convolution: y[c] = bias[c] + Σ_j w[j][c] * x[j][c], by
 * fma, j ascending from the oldest input; or silu of it.
 */
struct conv {
    const float *const *x; /* [taps] rows of n */
    const float *w;        /* [taps][w_stride] */
    size_t w_stride;
    size_t taps;
    const float *bias; /* NULL: none */
    bool silu;
    float *y;
    size_t n;
};
typedef void conv_fn(const struct conv *c);

/*
 * The gated delta rule (Yang et al. 2024, arXiv 2412.06464) on KERNELS_COLS
 * columns of the state S of a head, row by row:
 *   d[c] = sigmoid(rate) * (v[c] - Σ_i S[i][c] * (k[i] * decay[i]))
 *   S[i][c] = fma(S[i][c], decay[i], k[i] * d[c]),  o[c] = Σ_i S[i][c] * q[i]
 * with k and q scaled first.  Both sums in four partials by i mod 4, each by
 * fma, ascending; then (p0 + p2) + (p1 + p3).  v of columns past cols is 0.
 */
#define KERNELS_COLS 16

struct delta {
    const float *q, *k, *v, *decay, *rate;                          /* of the first row */
    size_t q_stride, k_stride, v_stride, decay_stride, rate_stride; /* floats from row to row */
    size_t decay_step; /* 1: a decay for each i; 0: one for all */
    float q_scale, k_scale;
    float *state; /* [n][KERNELS_COLS] */
    float *o;
    size_t o_stride;
    size_t rows;
    size_t n; /* ≤ KERNELS_HEAD_MAX */
    size_t cols;
};
typedef void delta_fn(const struct delta *d);

/*
 * RWKV-7's rule (Peng et al. 2025, arXiv 2503.14456) on KERNELS_COLS columns of
 * the state S of a head, for one row:
 *   a[c] = Σ_i S[i][c] * seen[i]
 *   S[i][c] = fma(S[i][c], decay[i], fma(a[c], write[i], v[c] * k[i])),  o[c] = Σ_i S[i][c] * r[i]
 * Both sums in four partials as above.  v of columns past cols is 0.
 */
struct wkv {
    const float *r, *k, *decay, *seen, *write; /* [n] */
    const float *v;                            /* [cols] */
    float *state;                              /* [n][KERNELS_COLS] */
    float *o;                                  /* [cols] */
    size_t n;
    size_t cols;
};
typedef void wkv_fn(const struct wkv *w);

/*
 * A selective state space (Gu and Dao 2023, arXiv 2312.00752; Dao and Gu 2024,
 * 2405.21060) on KERNELS_COLS columns, row by row:
 *   S[i][c] = fma(S[i][c], decay, b[i] * (x[c] * dt[c])),  y[c] = fma(x[c], d[c], Σ_i S[i][c] * c[i])
 * with decay = e^(dt[c] * a[i][c]), or the row's own where a is NULL.  The sum
 * in four partials as above.  x of columns past cols is 0.
 */
struct ssm {
    const float *x, *b, *c, *dt, *decay;                          /* of the first row */
    size_t x_stride, b_stride, c_stride, dt_stride, decay_stride; /* floats from row to row */
    const float *a;                                               /* [n][KERNELS_COLS], or NULL */
    bool dt_each;   /* a step for each column; else one for all */
    const float *d; /* [KERNELS_COLS] */
    float *state;   /* [n][KERNELS_COLS] */
    float *y;
    size_t y_stride;
    size_t rows;
    size_t n;
    size_t cols;
};
typedef void ssm_fn(const struct ssm *s);

/* n floats into a cache, to the bits of the format's from_f32 (but for those of a NaN). */
typedef void encode_fn(const float *x, void *out, size_t n);

/* -- selection -------------------------------------------------------------------- */

#define KERNEL(op, fmt, tier) op##_fn op##_##fmt##_##tier

struct kernels {
    quantize_fn *quantize[ACT_COUNT]; /* [ACT_F32] is NULL */
    matvec_fn *matvec[FORMAT_COUNT];  /* never NULL for a format with a scalar twin */
    gemm_fn *gemm[FORMAT_COUNT];      /* NULL: use matvec, 4 columns at a time */
    pack_fn *pack[FORMAT_COUNT];      /* the one that gemm[format] wants; NULL: canonical rows */
    size_t tile_cols[FORMAT_COUNT];   /* of that pack */
    size_t (*pack_bytes[FORMAT_COUNT])(size_t n);
    attn_fn *attn[FORMAT_COUNT]; /* by kv format: f16, q8_0, q4_0, f32 */
    attn_merge_fn *attn_merge;
    encode_fn *encode[FORMAT_COUNT]; /* NULL: the format's own from_f32 */
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

/* Fills k for the tiers in the mask (cpuid.h).  Called once at start, before threads. */
void kernels_select(struct kernels *k, unsigned tiers);

/* ((p0+p8)+(p4+p12)) + ((p2+p10)+(p6+p14)) + … : halves 16→8→4→2→1, p[i] + p[i + half]. */
static inline float kernels_tree16(const float p[16])
{
    float a[8];

    for (int i = 0; i < 8; i++)
        a[i] = p[i] + p[i + 8];
    for (int half = 4; half; half /= 2)
        for (int i = 0; i < half; i++)
            a[i] = a[i] + a[i + half];
    return a[0];
}
