/*
 * model - a model file as something that can be planned, loaded and run.
 *
 *     model_open      reads and proves the file: hparams, tensors, tokenizer, template
 *     model_plan      what a load would take, per account, and whether it fits
 *     model_load      reserves, reads the weights, makes the program of ops
 *     model_context   a sequence for it
 *     model_eval      runs a batch and gives logits
 *     model_embed     runs a text and gives its embedding
 *
 * Adding an architecture is one file in arch/ (arch.h says how): this room's
 * other files do not know families.
 *
 * Thread: ENGINE (a struct model belongs to it), but for model_open/model_plan
 * on a model of one's own (tools, tests, control's plan job).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/backend.h"
#include "common/err.h"
#include "daemon/gguf/gguf.h"
#include "daemon/memory/gauge.h"
#include "daemon/memory/ledger.h"
#include "daemon/memory/residency.h"
#include "daemon/sequence/sequence.h"
#include "daemon/tokenizer/tokenizer.h"

struct model;

/* Who else is in the budget and stays there, for the advice of a plan that does not fit. */
#define MODEL_OTHERS_MAX 4

struct model_others {
    size_t bytes; /* of the budget, that a model cannot be given */
    struct model_other {
        char name[128];
        size_t held,
            gives; /* what it holds; what its unloading would give beyond what counts as free */
    } list[MODEL_OTHERS_MAX]; /* those that would give most, first */
    unsigned n;
};

#define MODEL_HEADROOM_SHARE 8

struct model_options {
    size_t n_ctx; /* 0: the file's training context, capped by what the budget can hold */
    size_t
        n_batch;  /* rows of a prefill chunk at most; 0: 512, or up to 2048 where weights stream */
    size_t n_out; /* rows of logits of one call at most; 0: 4 */
    const struct format *kv; /* f16 (NULL), q8_0, q4_0, f32 */
    const char *state_dir;   /* where figures of drives are kept; NULL: none are */
    size_t bytes;            /* all that it may hold; 0: what the budget has free */
    size_t
        headroom; /* who plans keeps so much of what it has, or a MODEL_HEADROOM_SHARE: advice counts it */
    const struct model_others *others;  /* NULL: none */
    const struct reader_faults *faults; /* its weights are read by this instead; tests */
};

/* Sampling defaults of the file (general.sampling.*); has_ says which are there. */
struct model_sampling {
    bool has_temperature, has_top_k, has_top_p, has_min_p, has_repeat_penalty;
    float temperature, top_p, min_p, repeat_penalty;
    int32_t top_k;
};

struct model_info {
    const char *arch;
    char name[128]; /* general.name, or the file's */
    char type[32];  /* "Q4_1", of most bytes of weights */
    size_t n_params;
    size_t file_bytes;
    size_t n_ctx_train;
    size_t n_layers, n_embd, n_vocab, n_heads, n_kv_heads, n_experts, n_experts_used;
    size_t kv_bytes_per_token; /* in the kv format of the options it was planned or loaded with */
    size_t state_bytes;        /* of recurrent state and of windows, which do not grow */
    const char *chat_template; /* NULL: none; a terminated copy */
    struct model_sampling sampling;
    bool has_tokenizer;
    const char *pooling; /* of an embedding model: "mean", "cls", "last"; NULL: it writes text */
};

/* The answer before loading.  All in bytes; the sums are what the ledger will hold. */
struct model_plan {
    size_t n_ctx;    /* that would be used */
    bool ctx_capped; /* n_ctx 0 was asked and the budget, not the file, decided */
    size_t account[ACCOUNT_COUNT];
    size_t total;   /* resident when ready */
    size_t peak;    /* while loading */
    size_t floor;   /* what it holds at least for n_ctx */
    size_t needs;   /* … of so much that the headroom of its options is left beside it */
    size_t all;     /* budget from which on everything is resident */
    size_t n_batch; /* rows of a chunk: fewer than asked for where the budget is near the floor */
    struct placement placement;
    size_t free_bytes; /* of the budget that was given */
    bool fits;
    char advice[288]; /* when it does not: what would help ("--ctx 2048 would need 310.0 MiB") */
    double expert_bytes_per_token; /* of these, by experts that a router chooses */
    double bytes_per_token; /* weights and KV read for one token of decode at half the context */
};

int model_open(const char *path, struct model **ret, struct err *err);

/* Where metadata, tokenizer and tables are charged: reserved before they are made. */
struct model_room {
    struct ledger *ledger;
    const char *who; /* in refusals; copied */
    /* So many bytes were refused: lets others give some back, and true has it tried again.  NULL: nobody can. */
    bool (*make)(void *arg, size_t bytes);
    void *arg;
};
/* They are charged until model_close; model_load goes to the same ledger, which has the rest free. */
int model_open_within(const char *path, const struct model_room *room, struct model **ret,
                      struct err *err);
void model_close(struct model *m); /* gives back everything */
/* What messages and the ledger call it from now on: many files have the same general.name. */
void model_know_as(struct model *m, const char *name);

const struct gguf *model_gguf(const struct model *m);
const struct tokenizer *model_tokenizer(const struct model *m); /* NULL: none */
void model_info(const struct model *m, struct model_info *ret);
/* Calls fn for each tensor that no table of the architecture uses (for show). */
void model_unused_tensors(const struct model *m, void (*fn)(void *arg, const struct gguf_tensor *t),
                          void *arg);

/* Calls fn for each key under the architecture's prefix that its table does not read (for show). */
void model_unused_keys(const struct model *m, void (*fn)(void *arg, struct view key), void *arg);
/* Calls fn for each run of layers from … to (inclusive) that are alike: "attention (window 128), experts". */
void model_layer_kinds(const struct model *m,
                       void (*fn)(void *arg, int from, int to, const char *kind), void *arg);

/* free_bytes: what the budget has left for it. */
int model_plan(struct model *m, const struct model_options *opt, const struct backend_ops *ops,
               struct backend *be, size_t free_bytes, struct model_plan *ret, struct err *err);

/* What the rows of a batch cost: bytes by format, for whoever knows the rates of the machine. */
#define MODEL_WORK_MIXTURES                                                                        \
    8 /* kinds of layers with experts; of more, the rest count as the last */

/* What attention of some layers reads of a cache. */
struct model_span {
    double bytes; /* of a position */
    size_t reach; /* positions that a row sees at most; 0: all */
    size_t rows;  /* query heads that share a key */
};

enum model_span_kind { SPAN_ALL, SPAN_WINDOW, SPAN_CHOSEN, SPAN_INDEX, SPAN_COUNT };

struct model_work_mixture {
    struct gauge_mixture kind;
    size_t n_layers, n_wanted; /* all; those that rows whose logits are wanted meet alone */
};

struct model_work {
    double dense[FORMAT_COUNT];   /* of matrices that every row meets */
    double wanted[FORMAT_COUNT];  /* ... and that rows whose logits are wanted meet alone */
    double experts[FORMAT_COUNT]; /* of all experts of all layers */
    double slice_bytes;           /* of an expert's part, the mean: what is read at once */
    double head_bytes;            /* of the matrix that gives logits, in format head */
    enum format_id head;
    size_t n_layers, n_units; /* layers; those of them with experts */
    size_t n_experts, n_used; /* of a layer; 0: none */
    struct model_work_mixture mixtures[MODEL_WORK_MIXTURES];
    size_t n_mixtures;
    const struct format *kv;
    struct model_span spans[SPAN_COUNT];
    double state_bytes; /* recurrent, read and written for every row */
    size_t n_ops;
    double row_bytes; /* of activations, between the ops that are not matrices */
};
/* p: of model_plan; kv as it was planned with, NULL: f16. */
int model_work(const struct model *m, const struct model_plan *p, const struct format *kv,
               const struct backend_ops *ops, struct backend *be, struct model_work *ret,
               struct err *err);

/* Adds one to those that stay. */
void model_others_add(struct model_others *o, const char *name, size_t held, size_t gives);

/* Of a plan that does not fit: ERR_NOMEM with its sum and advice. */
int model_refuse(const struct model *m, const struct model_plan *p, struct err *err);
/* Refused (ERR_NOMEM with the plan's sum and advice) before anything is read when it does not fit. */
int model_load(struct model *m, const struct model_options *opt, struct ledger *l,
               const struct backend_ops *ops, struct backend *be, residency_progress_fn *progress,
               void *arg, const _Atomic bool *cancel, struct err *err);
bool model_loaded(const struct model *m);
size_t model_n_ctx(const struct model *m);
size_t model_n_batch(const struct model *m);
void model_residency(const struct model *m, struct residency_stats *ret);
/* Its weights, for reports; NULL when it is not loaded. */
struct residency *model_weights(struct model *m);
/* What it holds in the ledger, also while it loads; of a loaded model, the least that it could. */
size_t model_held_bytes(const struct model *m);
size_t model_floor_bytes(const struct model *m);
/*
 * Holds at most that many bytes from now on; between two layers, or between
 * calls (residency_resize).  ERR_NOMEM below its floor, and nothing changes.
 */
int model_resize(struct model *m, size_t bytes, struct err *err);

/* The one sequence that model_load has reserved and made; borrowed. */
struct sequence *model_sequence(struct model *m);

/*
 * Appends n ≤ n_batch ids to the sequence and computes logits for the rows
 * rows_out[n_out] (ascending, relative to the batch; n_out ≤ the option).
 * *ret_logits: [n_out][n_vocab], valid until the next call.  n_out 0 gives none.  Cancelled between two layers:
 * ERR_CANCELLED, and the sequence is as before; one with recurrent state is then at its last checkpoint
 * (sequence.h).  ids are checked against the vocabulary.
 */
int model_eval(struct model *m, const int32_t *ids, size_t n, const int32_t *rows_out, size_t n_out,
               const _Atomic bool *cancel, const float **ret_logits, struct err *err);

/*
 * The embedding of a text: the sequence is emptied, ids[n] are computed, and
 * the normed rows of the last layer are pooled as the file says; not
 * normalised.  ret: [n_embd].  ERR_UNSUPPORTED on a model that writes text,
 * ERR_TOO_LARGE when an encoder cannot take so many ids at once.
 */
int model_embed(struct model *m, const int32_t *ids, size_t n, const _Atomic bool *cancel,
                float *ret, struct err *err);

/*
 * Called from model_eval between two layers, in its thread: a sign of life
 * while a long batch computes.  NULL: none.
 */
void model_set_tick(struct model *m, void (*tick)(void *arg), void *arg);
