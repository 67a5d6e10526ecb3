/* What the files of this room share: the insides of a model. */
#pragma once

#include "daemon/graph/graph.h"
#include "daemon/model/arch.h"
#include "daemon/model/hparams.h"
#include "daemon/model/model.h"

#define MODEL_BATCH_DEFAULT 512
#define MODEL_BATCH_MAX     4096
#define MODEL_OUT_DEFAULT   4
#define MODEL_CHECKPOINTS   2   /* of recurrent state: places that a sequence can go back to */
#define MODEL_CTX_STEP      256 /* a capped context is a multiple of it */

struct model {
    struct gguf *g;
    struct tokenizer *tokenizer; /* NULL: none */
    const struct arch *arch;
    struct hparams hp;
    char *chat_template; /* NULL: none */
    char *name;
    char *known_as;         /* in messages and in the ledger; NULL: name */
    struct model_room room; /* ledger NULL: text is charged by model_load */
    char *room_who;
    /* [n_layers + 1][TENSOR_COUNT][PART_COUNT]; row 0 holds what is outside the layers */
    struct graph_weight *weights;
    size_t n_weights;
    const struct gguf_tensor **bound; /* by extent id */
    size_t n_bound, cap_bound;

    /* of a load */
    bool loaded;
    struct ledger *ledger;
    struct program_place place;
    struct program *program;
    struct residency *residency;
    struct sequence *sequence;
    struct region scratch; /* the arena, then the backend's scratch */
    size_t scratch_charged, text_charged, kv_charged;
    size_t text_asked; /* all that was charged for text before it was settled */
    size_t n_ctx, n_batch, n_out;
    const struct format *kv;
};

/* Where a weight stands; fmt NULL when the file has none.  layer −1: outside the layers. */
const struct graph_weight *model_weight(const struct model *m, int layer, enum tensor_name name,
                                        enum tensor_part part);

/* embed.c; NULL for NONE. */
const char *pooling_name(enum pooling p);

/* bind.c: a dimension of a tensor in a layer (−1: outside); has the layer such a row; must the file have it? */
uint64_t model_dim(const struct hparams *hp, int layer, enum dim d);
bool model_wants(const struct hparams *hp, int layer, const struct tensor_row *row);
bool model_needs(enum need need);
/* bind.c: finds and proves every tensor of the architecture's table. */
int model_bind(struct model *m, struct err *err);
size_t model_bind_bytes(const struct model *m); /* that it takes at most */
/* Declares all bound tensors, in the order of their ids, as the ops of g read them. */
void model_add_extents(const struct model *m, const struct graph *g, struct residency *r);

/* What a model would take at a context (plan.c). */
struct sizes {
    size_t account[ACCOUNT_COUNT]; /* staging among them, also what is held while loading alone */
    size_t total, peak;
    size_t fixed;      /* that does not depend on the placement; loading's staging among them */
    size_t all, floor; /* peaks with everything resident, and with the least */
    struct placement placement;
};

/* Options with the defaults in the place of zeros, and checked. */
int model_options_check(const struct model *m, const struct model_options *opt,
                        struct model_options *ret, struct err *err);
/*
 * The best that fits into bytes, or the floor.  opt has been checked and says
 * n_ctx; ret_program may be NULL.
 */
int model_sizes(const struct model *m, const struct model_options *opt, size_t bytes,
                const struct backend_ops *ops, struct backend *be, struct sizes *ret,
                struct program **ret_program, struct err *err);
/* Extents as they are planned and loaded: l NULL to plan. */
struct residency *model_residency_create(const struct model *m, const struct graph *g,
                                         const struct model_options *opt, struct ledger *l,
                                         const struct backend_ops *ops, struct backend *be,
                                         const char *who);
/* The layout of a sequence; layers: [n_layers]. */
struct sequence_layout model_layout(const struct model *m, const struct model_options *opt,
                                    struct sequence_layer *layers);
/* Metadata, tokenizer, template and tables. */
size_t model_text_bytes(const struct model *m);
/* Arena and the backend's scratch as one region. */
size_t model_scratch_bytes(const struct program *p);
/* Bytes of the keys and values of one position in a layer with attention. */
size_t model_position_bytes(const struct model *m, size_t layer, const struct format *kv);
/* Bytes of KV of one position. */
size_t model_kv_bytes_per_token(const struct model *m, const struct format *kv);
/* Bytes of a sequence that do not grow with it: recurrent state, and windows of keys and values. */
size_t model_state_bytes(const struct model *m, const struct format *kv);
/* load.c: gives back what a load holds, also a half-done one. */
void model_unload(struct model *m);
/* A fresh graph of the whole model, for sequences of n_ctx positions. */
struct graph *model_graph(const struct model *m, size_t n_ctx);
