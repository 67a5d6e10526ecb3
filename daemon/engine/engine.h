/*
 * engine - all that the network side knows: submit, cancel, load, unload,
 * plan, budget, report.
 *
 * The faces (openai, http, control) fill plain structs here and get events
 * back; they cannot name a model, a token or a tensor.  Work is done on the
 * ENGINE thread (and file jobs: plan, show, verify, on an IO thread); every call
 * here returns at once.  Events and answers are delivered in the LOOP thread,
 * from engine_dispatch(), which main calls when engine_fd() is readable.
 *
 * Thread: LOOP, for every function, unless it says otherwise.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/backend.h"
#include "common/err.h"
#include "common/str.h"
#include "daemon/memory/ledger.h"
#include "daemon/sampling/sampler.h"

struct engine;

/* -- start and stop ---------------------------------------------------------------- */

/* One known model: [model NAME], --model NAME=FILE, or a file of models_dir. */
struct engine_model_entry {
    char *name;
    char *path;
    char **aliases;
    size_t n_aliases;
    size_t n_ctx;   /* 0: by file and budget */
    char *kv;       /* "f16" (NULL), "q8_0", "q4_0" */
    int64_t ttl_ms; /* idle time after which it leaves; −1: engine default; 0: never */
    bool pin;       /* never leaves by itself */
};

struct engine_options {
    struct ledger *ledger; /* borrowed, shared with LOOP */
    const struct backend_ops *backend_ops;
    struct backend *backend; /* borrowed */
    size_t queue_max;        /* waiting requests beyond the running one */
    int64_t ttl_ms;          /* default of models */
    size_t n_batch;          /* rows of a prefill chunk; 0: as in model.h */
    char *state_dir;         /* what is measured once is kept there; NULL or "": nothing is */
    int64_t queue_wait_ms;   /* a request that waits longer fails with TIMEOUT; 0: no limit */
};

int engine_create(const struct engine_options *opt, struct engine **ret, struct err *err);
/* Refuses new work from now on (ERR_SHUTDOWN). */
void engine_drain(struct engine *e);
bool engine_idle(const struct engine *e); /* nothing running or waiting */
/* Cancels what runs, joins the threads, frees all; undelivered events are dropped. */
void engine_destroy(struct engine *e);

int engine_fd(const struct engine *e);
void engine_dispatch(struct engine *e);
/* Wall of the ENGINE thread's last sign of life, in clock_ms(); the watchdog looks at it.  Idle counts as alive. */
int64_t engine_heartbeat_ms(const struct engine *e);

/* Adds or replaces a known model.  The entry is copied. */
int engine_know(struct engine *e, const struct engine_model_entry *entry, struct err *err);
/* Forgets known models that keep() refuses (reload); a loaded one leaves when idle. */
void engine_forget(struct engine *e, bool (*keep)(void *arg, const char *name), void *arg);

/* -- requests ------------------------------------------------------------------------ */

enum request_kind { REQUEST_CHAT, REQUEST_COMPLETION, REQUEST_EMBEDDING };
const char *request_kind_name(enum request_kind k); /* "chat", "completion", "embedding" */

enum request_step {
#define STEP(name, text) STEP_##name,
#include "daemon/engine/steps.def"
#undef STEP
    STEP_COUNT
};
const char *request_step_name(enum request_step s);

#define REQUEST_MAX_STOPS 16

/*
 * What was asked, as plain data.  Sampling fields that the caller did not give
 * are taken from the file, then from sampling_defaults: given_ says which were
 * (bit 1 << SAMPLING_FIELD_x).
 */
enum sampling_field {
    SAMPLING_FIELD_temperature,
    SAMPLING_FIELD_top_k,
    SAMPLING_FIELD_top_p,
    SAMPLING_FIELD_min_p,
    SAMPLING_FIELD_repeat_penalty,
    SAMPLING_FIELD_seed
};

/* EMBEDDING: one text, or its ids. */
struct request_input {
    char *text;
    size_t len;
    int32_t *ids; /* NULL: text */
    size_t n_ids;
};

struct request {
    enum request_kind kind;
    char *model;             /* name or alias; NULL: the only loaded or the first known */
    json_t *messages;        /* CHAT: OpenAI's array, shape already checked; owned */
    json_t *tools;           /* CHAT: array or NULL; owned */
    json_t *template_kwargs; /* object or NULL; owned */
    char *prompt;            /* COMPLETION: text (prompt_len bytes) … */
    size_t prompt_len;
    int32_t *prompt_ids; /* … or ids */
    size_t n_prompt_ids;
    struct request_input *inputs; /* EMBEDDING */
    size_t n_inputs;
    bool echo;          /* COMPLETION: the prompt comes first in the text */
    int64_t max_tokens; /* −1: up to the context */
    unsigned n;         /* choices, one after another; ≥ 1 */
    struct sampling_options sampling;
    unsigned given; /* bits of enum sampling_field */
    struct {
        char *text;
        size_t len;
    } stop[REQUEST_MAX_STOPS];
    unsigned n_stops;
    bool ignore_eos;
    bool logprobs;           /* each token's log probability … */
    unsigned n_top_logprobs; /* … and the best alternatives, ≤ 20 */
    bool split_reasoning;    /* CHAT: reasoning apart from content */
    bool answer_whole;       /* its events are kept until the last: they are charged as they come */
    bool return_progress;    /* EVENT_PROGRESS while its model loads and its prompt is computed */
    /* ttl of the model after this request; 0: leaves at once; < 0: stays; INT64_MIN: as configured. */
    int64_t keep_alive_ms;
    size_t bytes; /* of the body and what was parsed of it: charged under requests while it lives */
    char client[64]; /* who asks, for the log: "http 127.0.0.1:5555", "rpc pid 77" */
};

struct request *request_create(enum request_kind kind); /* defaults filled in */
void request_destroy(struct request *r);
/*
 * The numbers of sampling (temperature, top_p, …) that an object has, each in
 * its range; what it has is marked in given.  Names of all: writes them unless
 * ret is NULL, returns how many.
 */
int request_read_numbers(struct request *q, const json_t *object, struct err *err);
size_t request_number_names(const char **ret);

enum event_kind {
    EVENT_STARTED,  /* the model is there and prefill begins */
    EVENT_PROGRESS, /* only with return_progress: loading moved (bytes), or prefill (tokens) */
    EVENT_TEXT,     /* text of choice; for CHAT this is content */
    EVENT_REASONING,
    EVENT_TOOL_CALL,   /* a call begins (tool_name, call index) or its arguments go on (text) */
    EVENT_CHOICE_DONE, /* finish says why */
    EVENT_EMBEDDING,   /* EMBEDDING: the vector of input `choice` */
    EVENT_DONE,        /* usage and timings are final; the last event of a request */
    EVENT_FAILED       /* error; the last event of a request */
};

enum finish { FINISH_STOP, FINISH_LENGTH, FINISH_TOOL_CALLS };
const char *finish_name(enum finish f); /* OpenAI's words, which rnbctl shows too */

struct token_logprob {
    int32_t id;
    float logprob;
    struct view text;   /* bytes of the piece; may be part of a character */
    size_t text_offset; /* bytes of the choice's text before it */
    unsigned n_top;
    struct {
        int32_t id;
        float logprob;
        struct view text;
    } top[20];
};

struct request_usage {
    size_t prompt_tokens;
    size_t cached_tokens;     /* of those, not computed again */
    size_t completion_tokens; /* of all choices */
    size_t reasoning_tokens;
};

struct request_timings {
    double queue_ms, load_ms, prefill_ms, decode_ms;
    double ttft_ms; /* from submit to the first token */
    double pp_per_s, tg_per_s;
    size_t bytes_read;   /* from the drive, by this request */
    size_t bytes_wanted; /* of what is not all in memory */
    uint64_t uses, hits; /* of experts, while decoding */
    double wait_ms;      /* compute stood still for reads */
};

struct event {
    uint64_t request;
    enum event_kind kind;
    unsigned choice;
    struct view text;
    const struct token_logprob *logprobs; /* of the tokens of text; NULL unless asked for */
    size_t n_logprobs;
    unsigned call;         /* EVENT_TOOL_CALL: index */
    const char *tool_name; /* at the beginning of a call, else NULL */
    const char *tool_id;
    enum request_step step; /* EVENT_PROGRESS: LOADING or PREFILLING */
    size_t progress, total;
    enum finish finish;
    const char *stop_text;  /* the stop string that matched, or NULL */
    const float *embedding; /* of length 1 (L2) */
    size_t n_embedding;
    const char *model; /* the name it ran on */
    struct request_usage usage;
    struct request_timings timings;
    const struct sampling_options *sampling; /* EVENT_DONE: what was used */
    const struct err *error;
    /*
     * With the last event: what the request has in the ledger, its answer with it.  A sink that
     * keeps the answer takes its bytes out, and gives them to engine_discharge itself.
     */
    size_t *charged;
};

/* Called in LOOP.  The event is borrowed for the call. */
typedef void event_fn(void *arg, const struct event *ev);

/*
 * Takes the request (also on failure).  ERR_BUSY when the queue is full,
 * ERR_NOT_FOUND (naming the known models), ERR_NOMEM (its bytes), ERR_SHUTDOWN.
 * No event is delivered before engine_submit has returned.
 */
int engine_submit(struct engine *e, struct request *take_request, event_fn *sink, void *arg,
                  uint64_t *ret_id, struct err *err);
/* The client left: no event of it is delivered after this; work stops within one layer. */
void engine_abandon(struct engine *e, uint64_t id);
/* Somebody else cancels it: it ends with EVENT_FAILED (CANCELLED).  ERR_NOT_FOUND. */
int engine_cancel(struct engine *e, uint64_t id, struct err *err);

/*
 * Work that would hold up the loop and needs nothing of the engine: work(arg) runs on the IO
 * thread, then done(arg) in LOOP, once and in any case (from engine_destroy at the latest).
 */
void engine_aside(struct engine *e, void (*work)(void *arg), void (*done)(void *arg), void *arg);

/* Bytes of requests that are still being read or parsed, in the same account; ERR_NOMEM. */
int engine_charge(struct engine *e, size_t bytes, const char *who, struct err *err);
void engine_discharge(struct engine *e, size_t bytes);
/*
 * *held becomes bytes, rounded down to whole steps, so that small things are free and the ledger is
 * not asked for each byte; ERR_NOMEM leaves it as it was.
 */
int engine_charge_steps(struct engine *e, size_t *held, size_t bytes, size_t step, const char *who,
                        struct err *err);

struct request_info {
    uint64_t id;
    enum request_kind kind;
    enum request_step step;
    char model[128];
    char client[64];
    size_t prompt_tokens;
    size_t done_tokens; /* prefilled so far while PREFILLING, generated while DECODING */
    int64_t age_ms;
};
/* Running first, then the queue in its order.  Returns how many there are; fills up to cap. */
size_t engine_requests(const struct engine *e, struct request_info *ret_list, size_t cap);

/* -- jobs: answers come once, in LOOP ------------------------------------------------- */

/*
 * done: 0 and a result object (the callee's to keep: take a reference), or
 * error.  progress (may be NULL) is called any number of times before.
 */
struct job_sink {
    void (*progress)(void *arg, const char *step, size_t done, size_t total);
    void (*done)(void *arg, json_t *result, const struct err *error);
    void *arg;
};

struct load_spec {
    const char *target; /* a known name or a path */
    const char *name;   /* name for a path; NULL: the file's stem */
    size_t n_ctx;       /* 0: as configured */
    const char *kv;     /* NULL: as configured */
    int64_t ttl_ms;     /* −1: as configured */
    int pin;            /* −1: as configured, else a bool */
};

/* Each returns a job id (≥ 1), or a negative kind at once.  Strings are copied. */
int64_t engine_load(struct engine *e, const struct load_spec *spec, const struct job_sink *sink,
                    struct err *err);
int64_t engine_unload(struct engine *e, const char *name, bool force, const struct job_sink *sink,
                      struct err *err);
/* plan FILE|NAME: ram 0 means the present budget, with what is loaded taken as able to leave (idle models). */
int64_t engine_plan(struct engine *e, const char *target, size_t n_ctx, const char *kv, size_t ram,
                    const struct job_sink *sink, struct err *err);
/* show NAME|FILE: metadata, tensors, template, unused tensors. */
int64_t engine_show(struct engine *e, const char *target, const struct job_sink *sink,
                    struct err *err);
/* verify NAME|FILE: every byte is read; digests of the parts, and what is wrong with tensors. */
int64_t engine_verify(struct engine *e, const char *target, const struct job_sink *sink,
                      struct err *err);
#define BENCH_DEPTHS_MAX 8

struct bench_spec {
    size_t n_prompt, n_gen;          /* tokens to measure; 0: not that */
    size_t depths[BENCH_DEPTHS_MAX]; /* tokens in the context before */
    unsigned n_depths;
    unsigned repeats;
};

/* bench NAME|FILE: pp and tg at each depth; runs as a request does (queued). */
int64_t engine_bench(struct engine *e, const char *target, const struct bench_spec *spec,
                     const struct job_sink *sink, struct err *err);
/* What a report of the cache has beside its sums. */
struct cache_ask {
    bool map;     /* every expert: heat, and is it resident? */
    bool experts; /* … and when it was used, and what was read of it */
    bool curve;   /* what other sizes would hit */
    /* map and experts begin with this layer, counted among those that have experts: an answer is
     * one line, and says as `next` where the rest of what has no room in it begins */
    size_t from;
    const char *trace; /* records choices to that file from now on; "" ends it, NULL leaves it */
};
/* cache [NAME]: what of a loaded model is in memory and how its experts do. */
int64_t engine_cache(struct engine *e, const char *name, const struct cache_ask *ask,
                     const struct job_sink *sink, struct err *err);
/* The caller left: no more callbacks; a load that nobody else waits for is cancelled. */
void engine_job_abandon(struct engine *e, int64_t job);

/* What loaded models could give back and still run: as it was when ENGINE last looked. */
size_t engine_spare_bytes(const struct engine *e);

/* -- budget and reports: at once -------------------------------------------------------- */

/* What may go for a budget below the floor of what is loaded. */
enum budget_force {
    BUDGET_KEEP,   /* nothing: ERR_CONFLICT with the floor */
    BUDGET_IDLE,   /* idle models, if that is enough */
    BUDGET_RUNNING /* the running request, too, and then its model: it ends with CANCELLED */
};
int64_t engine_set_budget(struct engine *e, size_t ram_bytes, enum budget_force force,
                          const struct job_sink *sink, struct err *err);
/* Is a budget that was asked for not set yet, other than by that job (0: any)? */
bool engine_budget_waits(const struct engine *e, int64_t but);

/* What a loaded model still has; the order in which it goes. */
enum model_stage {
    STAGE_WHOLE,   /* all that it was loaded with */
    STAGE_CACHES,  /* has given back slots of experts */
    STAGE_WEIGHTS, /* has given back dense weights, too */
    STAGE_CLOSING  /* the file is being closed */
};
const char *model_stage_name(enum model_stage s);

enum model_state { MODEL_LISTED, MODEL_LOADING, MODEL_READY, MODEL_DRAINING, MODEL_FAILED };
const char *model_state_name(enum model_state s);

/* What a loaded model wanted of its file and had; `cache` tells the same by layer. */
struct model_reads {
    uint64_t wanted, hit, read, over_read, read_ahead, read_ahead_unused; /* bytes */
    uint64_t uses, hits; /* of experts, by decode */
    double wait_ms;
    double device_mb_per_s; /* while something was being read */
};

struct model_status {
    char name[128];
    char path[512];
    char arch[64];
    char type[32];
    enum model_state state;
    bool loaded;            /* and then: */
    enum model_stage stage; /* … how much of it is left */
    size_t file_bytes, n_params;
    size_t n_ctx, n_ctx_train;
    char kv[16];
    size_t resident_bytes, total_bytes; /* weights */
    size_t charged_bytes;               /* all accounts */
    size_t progress, total;             /* while LOADING */
    int64_t idle_ms, until_ms;          /* until: time left before ttl; −1: stays */
    bool pin, busy;
    double pp_per_s, tg_per_s; /* of the last requests; 0: none yet */
    struct model_reads reads;  /* since it was loaded */
    int64_t created_s;         /* wall; of the file */
    char error[512];           /* of FAILED */
};
/* In order of the catalog.  Returns how many; fills up to cap. */
size_t engine_models(const struct engine *e, struct model_status *ret_list, size_t cap);
/* By name or alias; ERR_NOT_FOUND names the models that exist. */
int engine_model(const struct engine *e, const char *name, struct model_status *ret,
                 struct err *err);

struct engine_stats {
    uint64_t requests_done, requests_failed, requests_cancelled, requests_refused;
    uint64_t prompt_tokens, cached_tokens, completion_tokens;
    double prefill_seconds, decode_seconds, queue_seconds;
    uint64_t bytes_read, bytes_wanted;
    uint64_t expert_uses, expert_hits; /* by decode, where not all experts are resident */
    double wait_seconds;               /* compute stood still for reads */
    size_t running, waiting;
    uint64_t loads, unloads;
};
void engine_stats(const struct engine *e, struct engine_stats *ret);

/* The ledger and what the process really holds, for `rnbctl memory`. */
void engine_memory(const struct engine *e, enum pool pool, struct ledger_report *ret);
/* Rss of smaps_rollup, sampled by an IO thread at most once a second: 0 until the first is there. */
size_t engine_rss_bytes(const struct engine *e);
/* Of the files below loaded models, what is in the page cache, whoever read it; sampled with it. */
size_t engine_page_cache_bytes(const struct engine *e);
