/*
 * engine_priv - the engine's insides, and which thread has which of them.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "common/mailbox.h"
#include "daemon/engine/catalog.h"
#include "daemon/engine/engine.h"
#include "daemon/engine/queue.h"
#include "daemon/engine/work.h"
#include "daemon/memory/calibrate.h"
#include "daemon/memory/gauge.h"

/* LOOP: whom the events of a request go to; sink NULL: abandoned. */
struct ticket {
    struct task *task;
    event_fn *sink;
    void *arg;
};

struct job_ticket {
    struct job *job;
    struct job_sink sink;
    bool abandoned;
};

/* ENGINE: what is known of the machine. */
struct rates {
    bool opened; /* the gauge has been looked up */
    struct gauge gauge;
    struct calibration drive; /* the one looked at last, where no state folder keeps it */
    uint64_t drive_device;    /* st_dev; 0: none */
};

/* ENGINE. */
struct loading; /* loader.c */
struct worker {
    struct queue queue;
    struct rates rates;
    struct work *running;    /* NULL: none */
    struct loading *loading; /* of running, while weights are read; NULL: none */
    bool loads;              /* from the opening of a file to the end of its load */
    bool grow;               /* there was more to have meanwhile */
    struct job *budget;      /* wait for what runs to end or its load to break off, by work.next */
    bool taken;              /* from models, for others, and not given back yet, or left over */
    int64_t ended_ms;        /* the last work */
    bool stop;
};

/* IO: jobs that only look at files. */
struct reader {
    struct mailbox *inbox;
    pthread_t thread;
    bool started;
    bool stop;
};

struct engine {
    struct engine_options opt;
    struct mailbox *inbox;  /* letters to ENGINE */
    struct mailbox *outbox; /* letters to LOOP */
    struct catalog catalog;
    pthread_t thread;
    bool started;

    /* LOOP. */
    struct slot **slots; /* known models, in the order they became known */
    size_t n_slots, cap_slots;
    struct ticket *tickets;
    size_t n_tickets, cap_tickets;
    struct job_ticket *jobs;
    size_t n_jobs, cap_jobs;
    uint64_t last_id;
    bool draining;
    bool dying; /* nothing is delivered any more */

    struct worker worker;
    struct reader reader;

    /* Any thread. */
    _Atomic int64_t
        stat_alive_ms; /* ENGINE's last sign of life; INT64_MAX while it waits for work */
    _Atomic size_t stat_spare_bytes; /* of loaded models, above their floors */
    _Atomic size_t stat_rss_bytes, stat_page_cache_bytes;
    _Atomic int64_t stat_rss_asked_ms;
    pthread_mutex_t stats_lock; /* a leaf */
    struct engine_stats stats;  /* but for running and waiting, which are LOOP's */
};

/* -- events.c: letters up, from ENGINE or IO ------------------------------------------ */

/* Copies all that the event borrows. */
void events_post(struct engine *e, struct task *t, const struct event *ev);
/* As events_post; t belongs to LOOP from now on. */
void events_post_last(struct engine *e, struct task *take_task, const struct event *ev);
void events_job_progress(struct engine *e, struct job *j, const char *step, size_t done,
                         size_t total);
/* result or error; j belongs to LOOP from now on. */
void events_job_done(struct engine *e, struct job *take_job, json_t *take_result,
                     const struct err *error);

/* -- engine.c, LOOP: what the letters ask for --------------------------------------------- */

const struct ticket *engine_ticket(const struct engine *e, uint64_t id);
void engine_close_ticket(struct engine *e, uint64_t id);
const struct job_ticket *engine_job_ticket(const struct engine *e, uint64_t id);
void engine_close_job(struct engine *e, uint64_t id);
uint64_t engine_next_id(struct engine *e);

/* -- names.c, LOOP --------------------------------------------------------------------- */

struct slot *names_find(const struct engine *e, const char *name);
/* NULL: the only one in memory, or the first known.  ERR_NOT_FOUND names what there is. */
int names_resolve(const struct engine *e, const char *name, struct slot **ret, struct err *err);
/* The known model of that name, or a new transient one for a path. */
int names_resolve_target(struct engine *e, const char *target, const char *name, struct slot **ret,
                         struct err *err);
/* NULL and an error for what no cache can be kept in. */
const struct format *names_kv_format(const char *name, struct err *err);
void names_drop(struct engine *e, struct slot *s); /* out of the list, and ENGINE is told */

/* -- notes.c, LOOP → ENGINE: short letters ------------------------------------------------- */

void notes_slot_known(struct engine *e, struct slot *s);
void notes_slot_terms(struct engine *e, struct slot *s, const struct slot_terms *terms);
void notes_slot_retired(struct engine *e, struct slot *s);
void notes_cancel(struct engine *e, uint64_t id);
void notes_grow(struct engine *e);
void notes_stop(struct engine *e);
/* ENGINE → LOOP: a retired slot that nothing refers to any more. */
void notes_slot_gone(struct engine *e, struct slot *take_slot);

/* -- worker.c --------------------------------------------------------------------------------- */

void *worker_thread(void *engine);
/* A sign of life; for the hooks of long computations. */
void worker_alive(struct engine *e);
/* Reads the mail: between two steps of what runs, and from the progress of a load. */
void worker_read_mail(struct engine *e);
void worker_take(struct letter *l, void *engine);          /* deliver of a work */
void worker_run(struct engine *e, struct work *take_work); /* now, where nothing runs */
void worker_cancel(struct engine *e, uint64_t id);
void worker_cancel_all_of(struct engine *e, const struct slot *s, const char *why);
/* Ends a request that never ran, or has run: log line, counters, last event. */
struct run;
void worker_end_request(struct engine *e, struct task *t, const struct run *run, int r,
                        const struct err *err);

/* -- loader.c, ENGINE ---------------------------------------------------------------------------- */

/* Makes the model of work->slot ready and counts a user; loads it, and lets idle ones leave, when it must. */
int loader_take(struct engine *e, struct work *work, struct err *err);
/* What the model that is being read holds; 0: none is. */
size_t loader_held_bytes(const struct engine *e);
/* In that many bytes, the least it could be read with instead; more than these: it could not. */
size_t loader_least_bytes(const struct engine *e, size_t bytes);
/* Breaks its reading off; it begins again when the budgets that wait are set. */
void loader_begin_again(struct engine *e);
/* The work is done with the model. */
void loader_give_back(struct engine *e, struct work *work);
void loader_unload(struct engine *e, struct slot *s, const char *why);
/* Lets models whose time has come leave, and retired slots go back to LOOP; returns when to look again. */
int64_t loader_expire(struct engine *e, int64_t now_ms);

/* -- budget.c, ENGINE: between two layers ---------------------------------------------------------- */

/* What loaded models hold beyond their floors. */
size_t budget_spare_bytes(const struct engine *e);
/*
 * … and what of that is slots of experts beyond half of those that it was loaded
 * with: so much goes before anybody leaves.
 */
size_t budget_cache_bytes(const struct engine *e);
/* All that another model can be given: who may leave does, and who may not is cut to its floor. */
size_t budget_obtainable_bytes(const struct engine *e, const struct slot *but);
/* What another model cannot be given, and whose it is. */
void budget_others(const struct engine *e, const struct slot *but, struct model_others *ret);
/* Idle models first, then the one that works; returns what was freed. */
size_t budget_shrink(struct engine *e, size_t bytes);
size_t budget_shrink_caches(struct engine *e, size_t bytes);
/*
 * Makes so much free for what cannot do with less, in the order of a load: caches,
 * idle models (why: for the log), then all that is above a floor.  False where nothing
 * is missing, or all of it would not do: then nobody has given anything.
 */
bool budget_find(struct engine *e, size_t bytes, const char *why);
/*
 * The same where it may yet come to nothing, as with a file that nobody has read: all
 * that is above a floor, slots first, and nobody leaves, for who has left does not come
 * back, and what was lent does.
 */
bool budget_lend(struct engine *e, size_t bytes);
/*
 * Before a load, and when it has come to nothing: what models have given for it they
 * may have again.  A file has to be read before it is known what it needs.
 */
void budget_mark(struct engine *e);
void budget_restore(struct engine *e);
/*
 * There is more than before: models that are not all resident may take it, or when
 * the load that is at work has ended.  Nothing is read for that here: slots fill as
 * they are missed, dense weights come home between the layers of what runs.
 */
void budget_grow(struct engine *e);
/* For LOOP to see. */
void budget_tell_spare(struct engine *e);

/* -- jobs.c, ENGINE ------------------------------------------------------------------------------ */

void jobs_run_load(struct engine *e, struct job *take_job);
void jobs_unload(struct letter *l, void *engine); /* deliver */
void jobs_budget(struct letter *l, void *engine); /* deliver */
/* What ran has ended, or a load was broken off: budgets that wait for that go on. */
void jobs_budget_resume(struct engine *e);
void jobs_cache(struct letter *l, void *engine); /* cache.c: deliver */
void jobs_plan(struct letter *l, void *engine);  /* outlook.c: deliver */
void jobs_run_plan(struct engine *e, struct job *take_job);
void jobs_next_plan(struct engine *e); /* of those that have waited for another's end, if any */
void jobs_finish_leaving(struct engine *e, struct slot *s);
/* The budget is set: says so.  Any thread. */
void jobs_budget_done(struct engine *e, struct job *take_job, size_t n_unloaded);

/* -- bench.c, ENGINE ------------------------------------------------------------------------------ */

void bench_run(struct engine *e, struct job *take_job);
extern const char bench_text[]; /* bench_text.c */

/* -- reader.c, IO ----------------------------------------------------------------------------------- */

int reader_start(struct engine *e, struct err *err);
void reader_stop(struct engine *e);
void reader_post(struct engine *e, struct job *j);
/* Size and time of the model's file; they come back by letter. */
void reader_look_at_file(struct engine *e, const struct slot *s);
void reader_sample_rss(struct engine *e);
/* LOOP: and the page cache of the files below loaded models. */
void reader_sample_all(struct engine *e);
