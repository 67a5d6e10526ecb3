/* What the files of residency share; see residency.h. */
#pragma once

#include "daemon/memory/calibrate.h"
#include "daemon/memory/guard.h"
#include "daemon/memory/policy.h"
#include "daemon/memory/reader.h"
#include "daemon/memory/residency.h"
#include "daemon/memory/stream.h"
#include "daemon/memory/trace.h"
#include "daemon/memory/warm.h"

#define NO_DROP   SIZE_MAX
#define NO_SLOT   (-1)
#define NO_EXPERT (-1)

enum item_kind { ITEM_WHOLE, ITEM_SLICES, ITEM_ROWS };

/* An extent. */
struct item {
    struct extent e;
    enum item_kind kind;
    size_t at;   /* WHOLE, ROWS: in the region of dense weights; SLICES: in a slot */
    size_t drop; /* its place in the order of drops; NO_DROP: it never goes */
    size_t unit; /* SLICES: its layer among those with experts */
    size_t ring_at;
    unsigned pins;
};

/* A read, and whose it is. */
enum flight_kind { FLIGHT_RING, FLIGHT_EXPERT, FLIGHT_ROW };

struct flight {
    struct read rd;
    enum flight_kind kind;
    size_t index; /* slot of the ring; entry of the choice */
};

/* -- the ring -- */

/* What a layer has streamed. */
struct streamed {
    uint64_t wanted_bytes, read_bytes, wait_us;
    uint64_t ahead_bytes, ahead_unused_bytes;
};

struct segment { /* what a layer streams */
    int layer;
    struct streamed *counts;
    size_t first, n; /* of ring.items */
};

struct ring_slot {
    size_t segment; /* SIZE_MAX: free */
    unsigned pending;
    bool failed;
    size_t ahead_bytes; /* landed before its layer began */
    struct flight *flights;
};

struct ring {
    struct region region;
    struct segment *segments;
    extent_id *items;
    size_t n_segments, n_items, most_items;
    struct ring_slot *slots;
    size_t depth, slot_bytes;
    size_t next;   /* segment to be read next */
    size_t in_use; /* segment that computes; SIZE_MAX: none */
    size_t pins;   /* of weights in it */
    struct err err;
};

/* -- experts -- */

/* What is told of an expert; nothing is decided by it. */
struct expert_told {
    uint64_t last_use; /* number in residency.passed; 0: never */
    uint64_t read_bytes;
    uint32_t reads;
};

enum expert_state { EXPERT_ABSENT, EXPERT_READING, EXPERT_READY };

struct unit { /* a layer with experts */
    int layer;
    unsigned n_experts, n_parts;
    extent_id parts[RESIDENCY_PARTS];
    size_t at; /* of its slot in a rank */
    size_t slot_bytes;
    size_t slice_bytes[RESIDENCY_PARTS];
    /* what follows is there while the model is loaded; a cut relies on it when all are resident */
    struct policy_expert *experts;
    struct expert_told *told;
    unsigned quota;
    int32_t *slot_of;     /* < 0: NO_SLOT, or landing place −2 − i */
    unsigned char *state; /* enum expert_state */
    bool *tight;          /* loaded to the beginning of each part, not to its place in a block */
    int32_t *holder;      /* [n_experts] of slots */
    uint64_t wanted_bytes, hit_bytes, read_bytes, wait_us;
    uint64_t missed[RESIDENCY_MISSED];
};

enum entry_stage { ENTRY_HIT, ENTRY_WAITS, ENTRY_READING, ENTRY_LANDED, ENTRY_GIVEN, ENTRY_DONE };

struct choice {
    struct unit *unit; /* NULL: none in progress */
    bool decode;
    unsigned order[RESIDENCY_PARTS];
    size_t offsets[RESIDENCY_PARTS];
    uint32_t *ids; /* [n] different ones, ascending */
    unsigned char *stage;
    unsigned char *pending;
    uint32_t *count; /* [n_experts] rows that chose it */
    size_t n;
    struct flight *flights; /* [n][RESIDENCY_PARTS] */
    const void *(*data)[RESIDENCY_PARTS];
    struct err err;
    bool failed;
};

/* What a larger budget brings. */
enum growth { GROWTH_WEIGHTS, GROWTH_RING, GROWTH_SLOTS, GROWTH_TABLES, GROWTH_COUNT };

/* What the cliff guard sees of a token. */
struct cliff {
    struct guard guard;
    residency_probe_fn *probe;
    void *probe_arg;
    int64_t began_us;
    uint64_t faults, uses, hits; /* when the token began */
    size_t before; /* slots that there were when the cap came; 0: nothing to win back */
    bool open;     /* a token has begun */
};

struct residency {
    const struct gguf *g;
    struct ledger *ledger;
    const struct backend_ops *ops;
    struct backend *be;
    char *who; /* "model 'x'", for sentences … */
    char *tag; /* … and "model='x'", for the log */
    struct reader_faults engine;
    char *state_dir;             /* NULL: drives are not measured */
    struct reader_drive *drives; /* by part; NULL: the defaults */
    struct calibration drive;    /* of the first part */
    size_t max_rows;
    unsigned n_used;

    struct item *items;
    size_t n_items, cap_items;

    /* of seal() */
    bool sealed;
    struct placement_input in;
    struct placement_drop *drops;
    extent_id *drop_items; /* by place in the order */
    size_t n_layers;
    int *layers; /* numbers, by index of the input */
    struct unit *units;
    size_t *unit_at;
    size_t rows_at; /* of tables, in the region of dense weights */
    size_t most_experts, most_slot;
    size_t row_bytes; /* of the widest row of a table */

    /* of load() */
    bool loaded, has_placement;
    bool closed; /* ring, landing places or rows could not be made */
    bool whole;  /* experts lie in the order of their numbers, all of them */
    struct placement p;
    struct region dense, slots, landing, rows;
    struct warm *warm; /* touches dense and slots ahead, as far as p wants them; may be NULL */
    size_t charged[ACCOUNT_COUNT];
    size_t want_dropped; /* less than p.n_dropped while dense weights come back … */
    size_t want_depth;   /* … and then the ring may be so deep … */
    size_t want_slots;   /* … and the slots so many */
    bool want_tables;    /* … and tables come home at last */
    bool tables_charged;
    size_t tables_home;        /* of in.rows_bytes, so far */
    int stopped[GROWTH_COUNT]; /* by this error, as has been said; 0: by none */

    struct reader *reader; /* NULL: nothing streams */
    struct ring ring;
    struct choice choice;
    struct curve *curve;
    struct trace_writer *trace; /* NULL: not recorded */
    bool *landing_taken;
    unsigned n_landing;
    uint64_t passed; /* tokens and chunks of prompts, also those that nobody notes */
    uint64_t token;  /* those that are noted: the clock of heat */
    size_t last_unit;
    bool last_decode;
    uint64_t watched_tokens; /* of decode, while all is there */
    struct cliff cliff;
    int current_layer;

    size_t bytes_read; /* by load */
    double read_seconds;
    unsigned rows_pending;
    struct streamed *streamed; /* [n_layers] by index; NULL: nothing ever did */
    uint64_t ring_bytes, ring_wait_us, rows_wait_us, uses, hits;
};

/* residency_drives.c: reads what is kept of them, or measures them as options say; NULL: does not */
int residency_know_drives(struct residency *r, const struct calibrate_options *measure,
                          struct err *err);
/* A reader of all parts, each read as its drive likes it. */
int residency_open_reader(const struct residency *r, struct reader **ret, struct err *err);

/* residency.c */
void residency_seal(struct residency *r);
size_t residency_dense_end(const struct residency *r, const struct placement *p);
bool residency_is_dropped(const struct residency *r, const struct item *it);
/* Of a layer's number among those that extents name; a new one is added. */
size_t residency_layer_index(struct residency *r, int layer);
/* Dense weights and slots as r->p has them, and no more, may be touched ahead. */
void residency_warm(struct residency *r);
/* Takes what has landed; waits for min reads first. */
unsigned residency_pump(struct residency *r, unsigned min);
int residency_charge(struct residency *r, enum account account, size_t bytes, struct err *err);
void residency_uncharge(struct residency *r, enum account account, size_t bytes);
/* Regions, reader and books of what is not all resident, as r->p wants it; its staging is charged. */
int residency_open_streams(struct residency *r, struct err *err);
void residency_close_streams(struct residency *r);

/* resize.c: dense weights that may come home do, some at a time. */
void residency_grow(struct residency *r);
/* The ring, where a change of the budget could not make it. */
int residency_reopen_ring(struct residency *r, struct err *err);

/* residency_load.c: drives that something streams from are measured, and the caller is heard meanwhile */
int residency_look_at_drives(struct residency *r, residency_progress_fn *progress, void *arg,
                             const _Atomic bool *cancel, struct err *err);
int residency_read_in(struct residency *r, residency_progress_fn *progress, void *arg,
                      const _Atomic bool *cancel, struct err *err);
/* One dense extent to its home; stream_staging_bytes of it are reserved, and the reader is idle. */
int residency_read_home(struct residency *r, extent_id id, struct err *err);
/* Of that weight, what lies in [from, to) of the region of dense weights; staging: charged buffers. */
int residency_read_part_home(struct residency *r, extent_id id, size_t from, size_t to,
                             size_t staging, struct err *err);

/* ring.c: opens again with what is dropped now; the region stays where its size does. */
int ring_open(struct residency *r, struct err *err);
void ring_close(struct residency *r);
int ring_pin(struct residency *r, struct item *it, const void **ret_data, struct err *err);
/* A layer begins: what the one before it streamed may go. */
void ring_turn(struct residency *r, int layer);
void ring_landed(struct residency *r, struct flight *f);
/* After a cancel of all reads. */
void ring_forget(struct residency *r);

/* choice.c */
/* A layer's router has chosen: unit, ids and counts of r->choice.  True: a token begins. */
bool choice_begin(struct residency *r, const struct residency_choice *want);
/* For those who learn from it. */
void choice_note(struct residency *r, size_t rows);
/* With the token that was the last; without a trace nothing. */
int choice_end_trace(struct residency *r, struct err *err);

/* experts.c */
void experts_open(struct residency *r, bool all_there);
void experts_close(struct residency *r);
void experts_landed(struct residency *r, struct flight *f);
/* The quotas of another number of slots, where it is less: the best move to slots that stay. */
void experts_cut(struct residency *r, size_t n_slots);
void experts_grow(struct residency *r, size_t n_slots);
size_t experts_book_bytes(const struct residency *r);
/* How many of a layer have a slot. */
unsigned experts_resident(const struct unit *u);

/* residency_guard.c: around the layers with experts of one token */
void cliff_token_begins(struct residency *r);
void cliff_token_ends(struct residency *r);
void residency_probe_process(void *arg, int64_t *ret_us, uint64_t *ret_major_faults);

/* rows.c */
size_t rows_staging_bytes(const struct residency *r);
