/* What the files of this room share: the list of ops with references in place of addresses. */
#pragma once

#include "daemon/graph/graph.h"

enum ref_kind {
    REF_NONE,
    REF_VALUE,
    REF_WEIGHT,
    REF_K,
    REF_V,
    REF_GROUPS,
    REF_INDEX,
    REF_CONV,
    REF_STATE
};

/* Where a tensor of an op will be found: a value, an extent, or the cache of a layer. */
struct ref {
    enum ref_kind kind;
    uint32_t index;
    size_t offset; /* bytes into the extent */
};

/* An op whose tensors have shapes but no data; the rows of values are not set. */
struct node {
    struct op op;
    struct ref dst[OP_MAX_DST];
    struct ref src[OP_MAX_SRC];
};

struct value {
    size_t width;     /* elements */
    size_t row_bytes; /* of a row: 4 * width, or of act.h */
    enum act_kind act;
    bool out; /* rows = those whose logits are wanted */
    /* What was made from it, so that nothing is made twice. */
    graph_value quantised[ACT_COUNT];
    graph_value narrowed;
};

struct graph {
    struct node *nodes;
    size_t n_nodes, cap_nodes;
    struct value *values;
    size_t n_values, cap_values;
    int layer;
    graph_value output;
};

/* A run of ops that goes to the backend in one piece: one layer, one number of rows. */
struct group {
    size_t from, to;
    bool out; /* its ops have the wanted rows */
    size_t first_use, n_uses;
};

/* A weight that an op of a group reads. */
struct use {
    uint32_t node;
    uint8_t src;
    extent_id id;
    bool first; /* of this extent in its group: pinned by it */
};

struct place {
    size_t at;   /* bytes per row, from the start of its part of the arena */
    size_t size; /* bytes per row, a multiple of 64 */
};

struct binding {
    size_t rows, n_out;
    const struct sequence *sequence;
    const void *arena;
    bool checked;   /* op_check has passed all ops */
    struct op *ops; /* [n_nodes]; NULL: never bound */
};

#define N_BINDINGS 2 /* one token; the last batch that was larger */

struct program {
    struct node *nodes;
    size_t n_nodes;
    struct value *values;
    struct place *places; /* [n_values] */
    size_t n_values;
    struct group *groups;
    size_t n_groups;
    struct use *uses;
    size_t n_uses;
    size_t n_state_ops; /* those up to the last that keeps something */
    graph_value output;
    size_t max_rows, max_out;
    size_t batch_row_bytes, out_row_bytes; /* of the two parts of the arena */
    size_t scratch_bytes;
    struct binding bindings[N_BINDINGS];
    int32_t *counting; /* [max_rows] 0, 1, 2 …: the rows of a table that holds only those */
    int32_t *wanted;   /* [max_out] tokens of the rows that a batch wants */
};

enum { MOE_IDS = 1, MOE_GATE = 3 }; /* src of a mixture */

/* Does it leave something in a cache or a state? */
bool node_keeps(const struct node *n);

/* The tensor of a value for a number of rows. */
struct tensor value_tensor(const struct value *v, size_t rows, void *data);

/* stream.c: runs [from, to) of a bound program, mixtures of a group in pieces.  decode: of one token. */
int program_run_pieces(const struct program *p, const struct program_place *place, struct op *ops,
                       size_t from, size_t to, const struct op_run *run, bool decode,
                       struct err *err);
/* The same without mixtures, while dense weights stream: the reader is looked at now and then. */
int program_run_looking(const struct program_place *place, const struct op *ops, size_t from,
                        size_t to, const struct op_run *run, struct err *err);
/* Tells residency what mixtures of [from, to) have chosen, when that ran in one piece. */
void program_note_choices(const struct program *p, const struct program_place *place,
                          const struct op *ops, size_t from, size_t to, const struct op_run *run,
                          bool decode);
/* Does the group, whose uses are pinned, have such a mixture? */
bool program_has_pieces(const struct program *p, const struct group *g, const struct residency *r);
