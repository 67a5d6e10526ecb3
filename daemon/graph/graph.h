/*
 * graph - a model's computation as a list of ops, made once, run for any batch.
 *
 * Building (build.c): values are rows of f32, one row for each token of the
 * batch, or, after graph_rows(), one for each row whose logits are wanted.  The
 * number of rows is not known while building: a value has a width alone.
 * Weights are shapes and extents; the activations that quantised weights want
 * are made by the graph itself, once for each input and kind.
 *
 * Compiling (plan.c): the list becomes a program.  Every value has a place in
 * an arena that is counted in bytes per row, so one plan serves all batch
 * sizes; the backend is asked whether it can run each op, and how much scratch
 * any batch up to the largest would need.
 *
 * Running (exec.c): a program is bound to tensors for a number of rows, and
 * run layer by layer: the extents of a layer are pinned before and unpinned
 * after, and between layers the cancel flag is looked at.  The order of ops
 * never depends on the batch, so neither do the bits.  Where residency holds
 * some experts of a layer only, its mixture runs in pieces (stream.c).
 *
 * Thread: ENGINE.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/backend.h"
#include "common/err.h"
#include "common/str.h"
#include "daemon/memory/extent.h"
#include "daemon/memory/residency.h"
#include "daemon/sequence/sequence.h"

struct graph;

typedef uint32_t graph_value;
#define GRAPH_NONE UINT32_MAX

/* A tensor of the file: shape and format (data NULL), and where its bytes are.  t.fmt NULL: absent. */
struct graph_weight {
    struct tensor t;
    extent_id id;
    size_t offset; /* bytes into the extent: a part of a fused tensor */
};

/* Rows [from, from + n) of a matrix or of each of a stack; absent stays absent. */
struct graph_weight graph_weight_rows(const struct graph_weight *w, size_t from, size_t n);
/* Columns [from, from + n) of a table or elements of a vector, whole blocks of its format; the same. */
struct graph_weight graph_weight_columns(const struct graph_weight *w, size_t from, size_t n);

struct graph *graph_create(void);
void graph_destroy(struct graph *g);

/* The layer that the ops from here on belong to; −1: before or after the layers. */
void graph_layer(struct graph *g, int layer);

graph_value graph_embed(struct graph *g, const struct graph_weight *table, float scale);
/* Rows of a table of positions. */
graph_value graph_embed_by(struct graph *g, const struct graph_weight *table, enum op_embed by);
/* factors may be NULL or absent. */
graph_value graph_rope_table(struct graph *g, const struct op_rope_params *p,
                             const struct graph_weight *factors);
/* group: 0 for whole rows. */
graph_value graph_rmsnorm(struct graph *g, graph_value x, const struct graph_weight *w, float eps,
                          size_t group);
/* The same of whole rows; bias may be absent. */
graph_value graph_rmsnorm_bias(struct graph *g, graph_value x, const struct graph_weight *w,
                               const struct graph_weight *bias, float eps);
/* bias may be NULL or absent. */
graph_value graph_layernorm(struct graph *g, graph_value x, const struct graph_weight *w,
                            const struct graph_weight *bias, float eps, size_t group);
/*
 * n ≤ 3 products of one input: those whose weights want the same kind of
 * activations are one op.  bias may be NULL, and any of its members absent.
 */
void graph_matmul(struct graph *g, graph_value x, unsigned n, const struct graph_weight *const *w,
                  const struct graph_weight *const *bias, graph_value *ret);
graph_value graph_matmul1(struct graph *g, graph_value x, const struct graph_weight *w,
                          const struct graph_weight *bias);
/* A matrix of its own for each head of x: w is n_in × n_out × heads. */
graph_value graph_heads(struct graph *g, graph_value x, const struct graph_weight *w);
/* Columns [from, from + n) of every group of x. */
graph_value graph_slice(struct graph *g, graph_value x, size_t from, size_t n, size_t group);
/* Groups of na values of a, each followed by nb of b; b may be one group for all. */
graph_value graph_join(struct graph *g, graph_value a, size_t na, graph_value b, size_t nb);
/* Rotates x in place: n_dims of each head, from offset on. */
void graph_rope_part(struct graph *g, graph_value x, graph_value table, enum op_rope type,
                     unsigned n_dims, unsigned head_dim, unsigned offset);
void graph_rope(struct graph *g, graph_value x, graph_value table, enum op_rope type,
                unsigned n_dims, unsigned head_dim);
/* v: GRAPH_NONE where the layout says that values are a part of the keys. */
void graph_kv_store(struct graph *g, graph_value k, graph_value v, unsigned n_kv_heads,
                    unsigned head_dim, unsigned v_dim);
struct graph_attention {
    unsigned n_heads, n_kv_heads, head_dim, v_dim;
    unsigned window; /* 0: all of the past */
    bool chunked;    /* as in op.h */
    float scale;
    float soft_cap;  /* 0: none */
    bool non_causal; /* rows of the batch see each other */
    const struct graph_weight *sinks;
    bool shares;     /* reads the caches of another layer, ... */
    unsigned shared; /* ... of this one */
};
graph_value graph_attention(struct graph *g, graph_value q, const struct graph_attention *a);
/* Appends the rows to the layer's cache of index keys. */
void graph_index_store(struct graph *g, graph_value k, unsigned dim);
/* The top_k positions by the index keys of the layer: q is n_heads × dim, w n_heads. */
graph_value graph_indexer(struct graph *g, graph_value q, graph_value w,
                          const struct op_indexer_params *p, unsigned top_k);
/* Attention over what an indexer chose. */
graph_value graph_sparse(struct graph *g, graph_value q, graph_value chosen,
                         const struct graph_attention *a);
struct graph_compress {
    graph_value x, score;
    const struct graph_weight *place, *norm;
    bool index; /* into the layer's index keys; else into its keys of groups */
    struct op_compress_params p;
};
/* Keys of the groups that the batch completes. */
void graph_compress(struct graph *g, const struct graph_compress *c);
/* Attention to a window, then to the groups that an indexer chose (GRAPH_NONE: all). */
graph_value graph_near_far(struct graph *g, graph_value q, graph_value chosen, unsigned group,
                           const struct graph_attention *a);
/* Hyper-connections of n streams: shares and matrix of a row, what a part reads, what it leaves. */
graph_value graph_hyper_mix(struct graph *g, graph_value x, const struct graph_weight *scale,
                            const struct graph_weight *base, const struct op_hyper_params *p);
graph_value graph_hyper_in(struct graph *g, graph_value streams, graph_value mix, unsigned n);
graph_value graph_hyper_out(struct graph *g, graph_value streams, graph_value y, graph_value mix,
                            unsigned n);
/* Alternating updates of n streams: what is told of them by n × n shares, and put right by what the first became. */
graph_value graph_predict(struct graph *g, graph_value streams, graph_value shares, unsigned n);
graph_value graph_correct(struct graph *g, graph_value streams, graph_value first,
                          graph_value shares, unsigned n);
/* x, each group of it as wide as y made as long as y. */
graph_value graph_magnitude(struct graph *g, graph_value x, graph_value y);
/* What of x is above its mean by s deviations, and by how much. */
graph_value graph_above(struct graph *g, graph_value x, float s);
/* up GRAPH_NONE: the activation alone. */
graph_value graph_glu(struct graph *g, enum op_act act, graph_value gate, graph_value up);
/* The same of silu with a limit (op.h); 0: none. */
graph_value graph_swiglu(struct graph *g, float limit, graph_value gate, graph_value up);
/* When one of the two has the wanted rows only, the other is cut to them. */
graph_value graph_add(struct graph *g, graph_value a, graph_value b);
graph_value graph_scale(struct graph *g, graph_value x, float s);
/* x times the only number of w, or times its number for each column. */
graph_value graph_scale_by(struct graph *g, graph_value x, const struct graph_weight *w);
/* x * (1 + temperature * ln(1 + floor((position + offset) / step))) */
graph_value graph_temperature(struct graph *g, graph_value x, float temperature, unsigned step,
                              unsigned offset);
graph_value graph_softcap(struct graph *g, graph_value x, float cap);

struct graph_moe {
    unsigned n_expert, n_used;
    unsigned n_group, n_group_used; /* as in op.h */
    enum op_gating gating;
    bool normalise;
    float scale;
    enum op_act act;
    float limit;                       /* as in op.h */
    bool alone;                        /* experts without a gate: gate and up are the same weight */
    const graph_value *router_x;       /* what the router sees; NULL: x */
    const struct graph_weight *factor; /* of the weight of each expert; may be NULL */
    bool weigh_first;                  /* as in op.h */
    const struct graph_weight *ids;    /* of the chosen for each token; may be NULL */
    const struct graph_weight *router; /* logits; rows = n_expert */
    const struct graph_weight *router_bias; /* of the logits; may be NULL */
    const struct graph_weight *bias;        /* of the selection; may be NULL */
    const struct graph_weight *gate, *up, *down;
    const struct graph_weight *gate_bias, *up_bias, *down_bias; /* may be NULL */
};
graph_value graph_moe(struct graph *g, graph_value x, const struct graph_moe *m);

struct graph_conv {
    const struct graph_weight *taps, *bias; /* bias may be NULL */
    bool silu;
    unsigned column; /* of what the layer keeps, for the first of x */
};
/* x's columns convolved, as n ≤ 3 values of the widths given. */
void graph_conv(struct graph *g, graph_value x, const struct graph_conv *c, unsigned n,
                const size_t *widths, graph_value *ret);
/* softplus(x + bias); decay, where wanted (else NULL): e^(a * that). */
graph_value graph_softplus(struct graph *g, graph_value x, const struct graph_weight *bias,
                           const struct graph_weight *a, graph_value *ret_decay);
struct graph_delta {
    graph_value q, k, v, decay, rate;
    struct op_delta_params p;
};
graph_value graph_delta(struct graph *g, const struct graph_delta *d);

/* The row before each of x: of the first, what the layer keeps, whose columns from `column` on are x's. */
graph_value graph_shift(struct graph *g, graph_value x, unsigned column);
/* x + (y - x) * share, rows or the elements of a vector; all rows are cut where x or y is. */
graph_value graph_lerp(struct graph *g, graph_value x, graph_value y, graph_value share);
graph_value graph_lerp_by(struct graph *g, graph_value x, graph_value y,
                          const struct graph_weight *share);
struct graph_wkv {
    graph_value r, decay, k, v, rate; /* as in ops.def */
    const struct graph_weight *remove, *write, *bonus;
    unsigned n_heads, head_dim;
};
graph_value graph_wkv(struct graph *g, const struct graph_wkv *w, graph_value *ret_bonus);

/* The wanted rows of x (the same value again when x has them already). */
graph_value graph_rows(struct graph *g, graph_value x);
struct graph_ssm {
    graph_value x, in, out, dt;
    graph_value decay;            /* where not p.each */
    const struct graph_weight *a; /* where p.each */
    const struct graph_weight *through;
    struct op_ssm_params p;
};
graph_value graph_ssm(struct graph *g, const struct graph_ssm *s);

/* The elements of a contiguous weight as rows of n. */
struct graph_weight graph_weight_flat(const struct graph_weight *w, size_t n);

/* x, cut to the wanted rows where y is. */
graph_value graph_like(struct graph *g, graph_value x, graph_value y);
/* x holds the logits: what a program gives. */
void graph_output(struct graph *g, graph_value x);

/* For people: the first op of the kind in a layer, as it was built; NULL when the layer has none. */
const struct op *graph_find_op(const struct graph *g, int layer, enum op_kind kind);

/* Does it work on the rows alone whose logits are wanted? */
bool graph_op_wanted(const struct graph *g, const struct op *op);

/* How the ops read a weight. */
struct graph_reading {
    unsigned n_experts; /* 0: whole; else in that many slices, those that a router chooses */
    bool by_row;        /* rows that tokens name, and nothing else */
    bool wanted;        /* by none but ops on the rows whose logits are wanted */
};
/* ret: [n], by extent id. */
void graph_readings(const struct graph *g, size_t n, struct graph_reading *ret);

/* -- programs -------------------------------------------------------------------- */

struct program;

struct program_options {
    size_t max_rows; /* of a batch */
    size_t max_out;  /* rows whose logits are wanted, of a batch */
    const struct sequence_layout
        *layout; /* of the sequences it will run on; read while compiling */
};

/* ERR_UNSUPPORTED names the op and the format that the device cannot run. */
int graph_compile(const struct graph *g, const struct program_options *opt,
                  const struct backend_ops *ops, struct backend *be, struct program **ret,
                  struct err *err);
void program_destroy(struct program *p);

/* Of the largest batch: activations and logits; what the backend needs beside them. */
size_t program_arena_bytes(const struct program *p);
size_t program_scratch_bytes(const struct program *p);
size_t program_n_ops(const struct program *p);
/* What a row takes of memory in ops other than matrices and attention: read and written, between them. */
size_t program_row_bytes(const struct program *p);
/* Host memory of the program itself, with all its bindings. */
size_t program_memory_bytes(const struct program *p);

/* Where a program runs; all borrowed, and the same from call to call for speed. */
struct program_place {
    const struct backend_ops *ops;
    struct backend *be;
    struct residency *residency;
    const struct sequence *sequence;
    void *arena;             /* program_arena_bytes, 64-byte aligned */
    void *scratch;           /* program_scratch_bytes */
    void (*tick)(void *arg); /* before each layer; may be NULL */
    void *tick_arg;
    /* Bytes of dense weights computed between two looks at the reader while some of them stream;
     * 0: so many that it takes a millisecond or two. */
    size_t look_bytes;
};

/*
 * Runs a batch.  n_out 0: only what the caches need.  *ret_logits: [n_out][width
 * of the output], in the arena (NULL when n_out is 0).  On ERR_CANCELLED and
 * any other failure the caches hold rows that nobody has promised.
 */
int program_run(struct program *p, const struct program_place *place, const struct op_run *run,
                const float **ret_logits, struct err *err);

/* One line an op, for people and for tests. */
void program_dump(const struct program *p, struct str *out);
