/* The IO thread: jobs that only look at files, file sizes, the process's RSS, asides; see engine_priv.h. */
#include <stdlib.h>
#include <sys/stat.h>

#include "common/alloc.h"
#include "common/thread.h"
#include "daemon/engine/describe.h"
#include "daemon/engine/engine_priv.h"
#include "daemon/engine/verify.h"
#include "daemon/memory/probe.h"

/* A letter of no more content than its sender. */
struct errand {
    struct letter letter;
    struct engine *engine;
    const struct slot *slot; /* compared with LOOP's list before it is used again */
    char *path;
    char **files; /* whose page cache is wanted; NULL: none */
    bool cache;
    size_t file_bytes;
    int64_t created_s;
    void (*work)(void *arg); /* of an aside */
    void (*done)(void *arg);
    void *arg;
};

static void errand_free(struct errand *x)
{
    free(x->path);
    slot_files_free(x->files);
    free(x);
}

static void send(struct engine *e, void (*deliver)(struct letter *l, void *engine),
                 struct errand content)
{
    struct errand *x = XNEW(struct errand);

    *x = content;
    x->engine = e;
    x->letter.deliver = deliver;
    mailbox_post(e->reader.inbox, &x->letter);
}

/* -- jobs ------------------------------------------------------------------------------------ */

static void on_job(struct letter *l, void *engine)
{
    struct engine *e = engine;
    struct job *j = job_of((struct work *)l);
    json_t *result = NULL;
    struct err err;
    int r;

    if (work_cancelled(&j->work) || e->reader.stop)
        r = err_set(&err, ERR_CANCELLED, "the call was cancelled");
    else if (j->work.kind == WORK_PLAN)
        r = describe_plan(e, j, &err);
    else if (j->work.kind == WORK_VERIFY)
        r = verify_step(e, j, &result, &err);
    else
        r = describe_file(e, j, &result, &err);
    if (r >= 0 && j->work.kind == WORK_VERIFY && !result) { /* the rest after what else is asked */
        mailbox_post(e->reader.inbox, &j->work.letter);
        return;
    }
    if (r >= 0 && j->outlook) { /* ENGINE says how fast it will be */
        j->work.letter.deliver = jobs_plan;
        mailbox_post(e->inbox, &j->work.letter);
        return;
    }
    events_job_done(e, j, result, r < 0 ? &err : NULL);
}

void reader_post(struct engine *e, struct job *j)
{
    j->work.letter.deliver = on_job;
    mailbox_post(e->reader.inbox, &j->work.letter);
}

/* -- work of others -------------------------------------------------------------------------- */

/* LOOP. */
static void on_aside_done(struct letter *l, void *engine)
{
    struct errand *x = (struct errand *)l;

    (void)engine;
    x->done(x->arg);
    errand_free(x);
}

static void on_aside(struct letter *l, void *engine)
{
    struct engine *e = engine;
    struct errand *x = (struct errand *)l;

    x->work(x->arg);
    x->letter.deliver = on_aside_done;
    mailbox_post(e->outbox, &x->letter);
}

void engine_aside(struct engine *e, void (*work)(void *arg), void (*done)(void *arg), void *arg)
{
    thread_assert(THREAD_LOOP);
    send(e, on_aside, (struct errand){.work = work, .done = done, .arg = arg});
}

/* -- a file's size and time --------------------------------------------------------------------- */

/* LOOP.  The slot may be gone by now, but then it is not in the list. */
static void on_looked(struct letter *l, void *engine)
{
    struct engine *e = engine;
    struct errand *x = (struct errand *)l;

    for (size_t i = 0; i < e->n_slots; i++)
        if (e->slots[i] == x->slot)
            slot_set_file(&e->catalog, e->slots[i], x->file_bytes, x->created_s);
    errand_free(x);
}

static void on_look(struct letter *l, void *engine)
{
    struct engine *e = engine;
    struct errand *x = (struct errand *)l;
    struct stat st;

    /* A file that is not there yet may come; until then it has no size. */
    if (stat(x->path, &st) == 0) {
        x->file_bytes = (size_t)st.st_size;
        x->created_s = st.st_mtime;
    }
    x->letter.deliver = on_looked;
    mailbox_post(e->outbox, &x->letter);
}

void reader_look_at_file(struct engine *e, const struct slot *s)
{
    send(e, on_look, (struct errand){.slot = s, .path = xstrdup(s->path)});
}

/* -- RSS ---------------------------------------------------------------------------------------- */

static void on_sample(struct letter *l, void *engine)
{
    struct engine *e = engine;
    struct errand *x = (struct errand *)l;
    struct probe_self self;
    size_t bytes = 0;

    /* Without /proc the number stays what it was. */
    if (probe_self(&self, NULL) >= 0)
        atomic_store_explicit(&e->stat_rss_bytes, self.rss_bytes, memory_order_relaxed);
    if (x->cache) {
        for (size_t i = 0; x->files && x->files[i]; i++)
            bytes += probe_page_cache(x->files[i], false);
        atomic_store_explicit(&e->stat_page_cache_bytes, bytes, memory_order_relaxed);
    }
    errand_free(x);
}

void reader_sample_rss(struct engine *e)
{
    send(e, on_sample, (struct errand){0});
}

void reader_sample_all(struct engine *e)
{
    struct errand x = {.cache = true};
    size_t n = 0;

    for (size_t i = 0; i < e->n_slots; i++) {
        char **files = slot_files(&e->catalog, e->slots[i]);

        for (size_t k = 0; files && files[k]; k++) {
            x.files = xreallocarray(x.files, n + 2, sizeof *x.files);
            x.files[n++] = files[k];
            x.files[n] = NULL;
        }
        free(files);
    }
    send(e, on_sample, x);
}

/* -- the thread ---------------------------------------------------------------------------------- */

static void on_stop(struct letter *l, void *engine)
{
    struct engine *e = engine;

    e->reader.stop = true;
    errand_free((struct errand *)l);
}

static void *run(void *engine)
{
    struct engine *e = engine;

    thread_take_role(THREAD_IO, "rnbd-reader");
    while (!e->reader.stop) {
        struct letter *l;

        mailbox_wait(e->reader.inbox, -1);
        while (!e->reader.stop && (l = mailbox_take(e->reader.inbox)))
            l->deliver(l, e);
    }
    /* What has not been done yet is answered: cancelled. */
    for (struct letter *l; (l = mailbox_take(e->reader.inbox));)
        l->deliver(l, e);
    return NULL;
}

int reader_start(struct engine *e, struct err *err)
{
    int errnum;

    e->reader.inbox = mailbox_create();
    errnum = thread_start(&e->reader.thread, run, e);
    if (errnum)
        return err_set_errno(err, ERR_INTERNAL, errnum, "cannot start the reader's thread");
    e->reader.started = true;
    return 0;
}

void reader_stop(struct engine *e)
{
    if (e->reader.started) {
        send(e, on_stop, (struct errand){0});
        pthread_join(e->reader.thread, NULL);
    }
    mailbox_destroy(e->reader.inbox);
}
