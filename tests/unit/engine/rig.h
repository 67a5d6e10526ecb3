/*
 * rig - an engine with tiny models, and what its sinks were told: for the
 * tests of this room.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/str.h"
#include "daemon/engine/engine.h"
#include "tests/support/cpu_backend.h"

#define RIG_MAX_MODELS 4
#define RIG_MAX_EVENTS 8192

/* What a request was told. */
struct told {
    struct rig *rig;
    uint64_t id;
    enum event_kind kinds[RIG_MAX_EVENTS];
    size_t n;
    struct str text[4]; /* by choice: content */
    struct str reasoning;
    enum finish finish[4];
    char stop_text[64];
    char model[128];
    struct request_usage usage;
    struct request_timings timings;
    struct sampling_options sampling;
    struct err error;
    bool ended;
    struct str logprob_text; /* texts of the log probabilities, one after another */
    size_t n_logprobs;
    bool offsets_wrong; /* a text_offset was not where its text is */
    float worst_logprob;
    /* Called at the first text, to meddle with what runs: the engine is held from submit until it has returned. */
    void (*at_text)(struct told *t);
    bool meddled;
};

struct answer {
    struct rig *rig;
    json_t *result;
    struct err error;
    bool failed, ended;
    size_t n_progress;
};

struct rig {
    struct cpu_backend cpu;
    struct backend_ops ops; /* the CPU's, with a gate in front of run() and alloc() */
    struct ledger *ledger;
    struct engine *e;
    int fds[RIG_MAX_MODELS];
    char *paths[RIG_MAX_MODELS];
    size_t n_models;
};

/* An engine that knows n models m0, m1 … (alias "first" of m0); ram 0: plenty.  opt may be NULL. */
void rig_open(struct rig *r, size_t n_models, size_t ram, const struct engine_options *opt);
/* Destroys the engine and sees that the ledger is empty. */
void rig_close(struct rig *r);

/*
 * From rig_hold() to rig_release() the engine stands still in front of its next
 * operation, and goes on by one each time a rig_wait…() finds it there and has
 * nothing to deliver: what runs cannot end before the test looks, and what was
 * said to the engine is heard one operation later, whoever is scheduled when.
 */
void rig_hold(struct rig *r);
void rig_release(struct rig *r);
/* Lets an engine that is held go on until more than these bytes are in the ledger. */
void rig_go_on_until(struct rig *r, size_t bytes);

struct request *rig_completion(const char *model, const char *prompt, int64_t max_tokens);
struct request *rig_chat(const char *model, const char *text, int64_t max_tokens);
void rig_greedy(struct request *q);

int rig_submit(struct rig *r, struct request *take, struct told *t, struct err *err);
/* Dispatches until it has ended. */
void rig_wait(struct rig *r, struct told *t);
void rig_run(struct rig *r, struct request *take, struct told *t);
void told_clear(struct told *t);
bool told_has(const struct told *t, enum event_kind kind);

struct job_sink rig_sink(struct rig *r, struct answer *a);
void rig_wait_job(struct rig *r, struct answer *a);
void answer_clear(struct answer *a);
/* Loads m(i) and waits; fails the test when it does not work. */
void rig_load(struct rig *r, const char *name);
void rig_load_pinned(struct rig *r, const char *name);
enum model_state rig_state(struct rig *r, const char *name);
/* Dispatches until the model is in that state. */
void rig_wait_state(struct rig *r, const char *name, enum model_state state);
/* Bytes that one loaded model takes. */
size_t rig_model_bytes(struct rig *r, const char *name);
