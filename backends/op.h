/*
 * op - one operation on tensors, as a backend runs it.
 *
 * The list of operations is ops.def; op_check() proves shapes and formats once,
 * when a program is bound, so backends trust what they get.  A batch is always
 * a run of consecutive positions of one sequence: struct op_run says which.
 *
 * Activations are f32 rows [rows][width] unless the op says otherwise; ids of
 * experts are int32 in an f32-sized slot; act rows are bytes in the layout of
 * act.h (their tensor has fmt = f32 and stride[1] = act_row_bytes()).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/tensor.h"
#include "common/err.h"

enum op_kind {
#define OP(name, n_src, help) OP_##name,
#include "backends/ops.def"
#undef OP
    OP_COUNT
};

/* CLAMPED: gpt-oss's SwiGLU, whose gate and up are clamped (backends/cpu/math.h has the formula). */
enum op_act { OP_ACT_SILU, OP_ACT_GELU, OP_ACT_RELU2, OP_ACT_CLAMPED, OP_ACT_SIGMOID, OP_ACT_NONE };
enum op_rope { OP_ROPE_NORM, OP_ROPE_NEOX }; /* neighbours; halves */

/* Scores of experts.  The chosen ones: by the logits; the weights are of the chosen logits alone. */
enum op_gating {
    OP_GATING_SOFTMAX,
    OP_GATING_SIGMOID,
    OP_GATING_SOFTMAX_CHOSEN,
    OP_GATING_SIGMOID_CHOSEN,
    OP_GATING_SQRT_SOFTPLUS
};

/* RoPE: YaRN by Peng et al. 2023 (arXiv 2309.00071), linear by Chen et al. 2023 (2306.15595). */
struct op_rope_params {
    enum op_rope type;
    unsigned n_dims;
    float base;
    float freq_scale;  /* 1 / factor */
    float ext_factor;  /* 0: linear, 1: YaRN's interpolation ramp */
    float attn_factor; /* magnitude of cos, sin; YaRN's 1 + 0.1 ln(1 / freq_scale) comes on top */
    float beta_fast;
    float beta_slow;
    unsigned n_ctx_orig;
    bool inverse; /* the other way round */
};

/*
 * OP_MOE in pieces, for experts that come one after another and lie anywhere:
 * the first call brings the rows together, each computes the experts that have
 * addresses, the last one sums up in rank order.  All calls of one MOE get the
 * same scratch, and nothing else uses it between them; the bits are those of a
 * single call.
 */
struct op_experts {
    const void *(*data)[3]; /* [n_expert]: gate, up, down; NULL: not in this call */
    bool first, last;
};

struct op_delta_params {
    unsigned n_heads;
    unsigned n_k_heads; /* of q and k, each for n_heads / n_k_heads heads */
    bool adjacent;      /* those lie side by side; else head h has k head h modulo n_k_heads */
    unsigned k_dim, v_dim;
    float q_scale, k_scale;
};

/* One head whose columns have decays each of their own: Mamba; else Mamba-2. */
struct op_ssm_params {
    unsigned n_heads;
    unsigned n_groups; /* of what goes in and out, each for n_heads / n_groups heads */
    unsigned head_dim, n_state;
    bool each; /* src4 = numbers [n_state][head_dim] that a step times one of makes a decay */
};

/* Which row of the table a row of the batch takes: of its token, its position, or the first. */
enum op_embed { OP_EMBED_TOKEN, OP_EMBED_POSITION, OP_EMBED_FIRST };

/* Positions in groups, each with a key of its own: see ops.def. */
struct op_compress_params {
    struct op_rope_params rope; /* turns the last n_dims of a key by its group's first position */
    unsigned group;
    unsigned dim;
    unsigned column; /* of the rows kept: there begin src0's columns, then src1's */
    bool overlap; /* twice dim columns: a key is made of the first half of the group before too */
    float eps;
};

struct op_indexer_params {
    unsigned n_heads, head_dim;
    float scale;    /* of the weights */
    unsigned group; /* positions that share a key, which is seen when all of them are; 0: 1 */
};

struct op_hyper_params {
    unsigned n, n_iter; /* streams; normings of their matrix */
    float eps;
};

union op_params {
    struct {
        float scale;
        enum op_embed by;
    } embed;
    struct op_rope_params rope_table;
    struct {
        float eps;
        size_t group;
    } rmsnorm;
    struct {
        float eps;
        size_t group;
    } layernorm;
    struct {
        enum act_kind act;
    } quantize;
    struct {
        unsigned n_weights;
        enum act_kind act;
    } matmul;
    struct {
        enum act_kind act;
    } heads; /* a head's activations begin on a block of their own */
    struct {
        size_t from, n, group;
    } slice;
    struct {
        size_t n[2]; /* of a group of each source */
    } join;
    struct {
        enum op_rope type;
        unsigned n_dims; /* that are rotated, from the offset on */
        unsigned offset;
        unsigned head_dim;
    } rope;
    struct {
        unsigned n_heads, n_kv_heads, head_dim, v_dim, window;
        bool chunked; /* the window does not slide: it begins at multiples of itself */
        float scale, soft_cap;
        unsigned group;  /* of NEAR_FAR: positions that share a key of src2 */
        bool non_causal; /* rows see each other; a window reaches half to either side */
    } attention;
    struct op_indexer_params indexer;
    struct {
        unsigned n_kv_heads, head_dim, v_dim;
    } kv_store;
    struct op_compress_params compress;
    struct op_hyper_params hyper; /* of PREDICT and CORRECT n alone */
    struct {
        float s;
    } above;
    struct {
        enum op_act act;
        float limit; /* of silu's gate from above, of the second factor to both sides; 0: none */
    } glu;
    struct {
        float s;
        /* Times 1 + temperature * ln(1 + floor((position + offset) / step)) where it is not 0; step > 0. */
        float temperature;
        unsigned step, offset;
    } scale;
    struct {
        float cap;
    } softcap;
    struct {
        unsigned n_expert, n_used;
        unsigned n_group, n_group_used; /* ≤ 1 group: all experts compete */
        enum op_gating gating;
        bool normalise;
        float scale;
    } router;
    struct {
        unsigned n_expert, n_used;
        enum op_act act;
        enum act_kind in_act, mid_act;
        float limit;      /* as of glu */
        bool weigh_first; /* weights are of what gate and up give, not of down */
        bool alone;       /* act(gate) without a second factor: up is the same matrix */
        const struct op_experts *experts; /* NULL: all of them, out of src 3 to 5 */
    } moe;
    struct {
        bool silu;       /* of the sum */
        unsigned column; /* of the inputs kept, for the first of src0 */
    } conv;
    struct op_delta_params delta;
    struct {
        unsigned column; /* of the inputs kept, for the first of src0 */
    } shift;
    struct {
        unsigned n_heads, head_dim;
    } wkv;
    struct op_ssm_params ssm;
};

#define OP_MAX_SRC     9
#define OP_MAX_DST     3
#define OP_MAX_EXPERTS 1024 /* of one router */
#define OP_MAX_STREAMS 8    /* of hyper-connections */

struct op {
    enum op_kind kind;
    int layer; /* −1 outside the layers */
    struct tensor dst[OP_MAX_DST];
    struct tensor src[OP_MAX_SRC]; /* fmt NULL where absent */
    union op_params p;
};

/* Positions of a chunk of a KV cache: what one attention kernel sees (kernels.h, KERNELS_CHUNK). */
#define OP_KV_CHUNK 256

/*
 * KV caches: k of a layer is a tensor of n[0] = head_dim, n[1] = OP_KV_CHUNK
 * positions, n[2] = n_kv_heads, n[3] = chunks: a chunk of one head is
 * contiguous; position p lies in chunk p / n[1].  v likewise with v_dim; it may
 * be the first v_dim values of each key, and is then not stored.
 */

/*
 * Recurrent state of a layer: f32; n[0] = OP_STATE_COLS columns (values), n[1] =
 * rows (keys), n[2] = blocks of columns, n[3] = heads.  Columns past a head's
 * own are there and mean nothing.  Inputs kept by a convolution: f32, n[0] =
 * columns, n[1] = taps − 1, the latest last.  Both belong to the position
 * before row 0 when an op begins, and to that of the last row when it ends.
 */
#define OP_STATE_COLS 16
#define OP_CONV_TAPS  16 /* at most */
#define OP_SSM_EACH   64 /* n_state at most where each element has a decay */

/*
 * Rows kept by COMPRESS lie in the same memory as inputs of a convolution, that
 * of a position in row position % n[1]; they must reach back to the first row
 * that a group which is not complete is made of.
 */

/*
 * What changes from batch to batch.  Tensors are bound once with n[1] = the
 * most rows; an op works on the first `rows` of them.  OP_ROWS and the ops
 * that follow it in the same run() work on n_out rows.
 *
 * A cache with fewer chunks than positions is a ring: chunk p / OP_KV_CHUNK
 * lies at n[3] modulo.  It must hold every chunk that a row of the batch sees.
 */
struct op_run {
    const int32_t *tokens;   /* [rows] */
    size_t rows;             /* ≥ 1 */
    size_t pos;              /* absolute position of row 0 */
    const int32_t *rows_out; /* [n_out] rows whose logits are wanted, ascending */
    size_t n_out;
    const _Atomic bool *cancel; /* looked at between layers; may be NULL */
};

const char *op_name(enum op_kind kind);

/* Shapes, formats and parameters of one bound op; a fault is a bug of the graph and says which. */
int op_check(const struct op *op, struct err *err);

/* Scratch beyond the tensors is asked from the backend: backend.h, scratch_bytes. */
