/* An engine for tests; see rig.h. */
#include <check.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/alloc.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/thread.h"
#include "tests/support/tiny_model.h"
#include "tests/unit/engine/rig.h"

/* Only a failure waits so long: a plan that measures the machine says nothing for a minute under a sanitizer on a busy one. */
#define PATIENCE_MS 300000

/* One for all rigs, since run() is not told whose it is; a process has one rig at a time. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    bool held, stands, pass; /* stands: somebody is in front of it; pass: one may go on */
    int fd;                  /* readable while somebody stands */
    const struct backend_ops *behind;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .opened = PTHREAD_COND_INITIALIZER, .fd = -1};

static void set_stands(bool stands)
{
    uint64_t n = 1;

    if (stands != gate.stands)
        ck_assert_int_eq(stands ? write(gate.fd, &n, sizeof n) : read(gate.fd, &n, sizeof n),
                         sizeof n);
    gate.stands = stands;
}

static void pass_gate(void)
{
    pthread_mutex_lock(&gate.lock);
    while (gate.held && !gate.pass) {
        set_stands(true);
        pthread_cond_wait(&gate.opened, &gate.lock);
    }
    set_stands(false);
    gate.pass = false;
    pthread_mutex_unlock(&gate.lock);
}

static int gated_run(struct backend *be, const struct op *ops, size_t n, const struct op_run *run,
                     void *scratch, struct err *err)
{
    pass_gate();
    return gate.behind->run(be, ops, n, run, scratch, err);
}

static int gated_alloc(struct backend *be, size_t bytes, struct region *ret_region, struct err *err)
{
    pass_gate();
    return gate.behind->alloc(be, bytes, ret_region, err);
}

static bool gate_stands(void)
{
    bool stands;

    pthread_mutex_lock(&gate.lock);
    stands = gate.stands && !gate.pass; /* or it is about to go on */
    pthread_mutex_unlock(&gate.lock);
    return stands;
}

static void gate_let_one_pass(void)
{
    pthread_mutex_lock(&gate.lock);
    gate.pass = gate.stands;
    pthread_cond_signal(&gate.opened);
    pthread_mutex_unlock(&gate.lock);
}

static void gate_set(bool held)
{
    pthread_mutex_lock(&gate.lock);
    gate.held = held;
    gate.pass = false;
    pthread_cond_broadcast(&gate.opened);
    pthread_mutex_unlock(&gate.lock);
}

static void gate_open(struct rig *r)
{
    if (gate.fd < 0)
        gate.fd = eventfd(0, EFD_CLOEXEC);
    ck_assert_int_ge(gate.fd, 0);
    gate_set(false);
    gate.behind = r->cpu.ops;
    r->ops = *r->cpu.ops;
    r->ops.run = gated_run;
    r->ops.alloc = gated_alloc;
}

void rig_hold(struct rig *r)
{
    ck_assert_ptr_nonnull(r->e);
    gate_set(true);
}

void rig_release(struct rig *r)
{
    ck_assert_ptr_nonnull(r->e);
    gate_set(false);
}

void rig_open(struct rig *r, size_t n_models, size_t ram, const struct engine_options *opt)
{
    static char alias[] = "first";
    static char *aliases[] = {alias};
    struct engine_options o = {.queue_max = 8};
    struct err err;

    log_set_level(LOG_LEVEL_ERROR);
    *r = (struct rig){.cpu = cpu_backend_open(2, NULL), .ledger = ledger_create()};
    gate_open(r);
    if (ram)
        ck_assert_int_eq(ledger_set_budget(r->ledger, POOL_RAM, ram, &err), 0);
    if (opt)
        o = *opt;
    o.ledger = r->ledger;
    o.backend_ops = &r->ops;
    o.backend = r->cpu.be;
    ck_assert_int_eq(engine_create(&o, &r->e, &err), 0);
    for (size_t i = 0; i < n_models; i++) {
        struct tiny_model m = {.family = i % 2 ? "qwen3" : "llama", .seed = 7 + i, .n_ctx = 512};
        struct engine_model_entry entry = {.ttl_ms = -1, .n_ctx = 512};
        char name[24];

        snprintf(name, sizeof name, "m%zu", i);
        r->fds[i] = tiny_model_memfd(&m);
        r->paths[i] = gguf_writer_fd_path(r->fds[i]);
        entry.name = name;
        entry.path = r->paths[i];
        if (i == 0) {
            entry.aliases = aliases;
            entry.n_aliases = 1;
        }
        ck_assert_msg(engine_know(r->e, &entry, &err) == 0, "%s", err.text);
        r->n_models++;
    }
}

void rig_close(struct rig *r)
{
    rig_release(r);
    engine_destroy(r->e);
    ck_assert_uint_eq(ledger_used(r->ledger, POOL_RAM), 0);
    ledger_destroy(r->ledger);
    cpu_backend_close(&r->cpu);
    for (size_t i = 0; i < r->n_models; i++) {
        close(r->fds[i]);
        free(r->paths[i]);
    }
}

void rig_greedy(struct request *q)
{
    q->sampling.temperature = 0;
    q->given |= 1u << SAMPLING_FIELD_temperature;
}

struct request *rig_completion(const char *model, const char *prompt, int64_t max_tokens)
{
    struct request *q = request_create(REQUEST_COMPLETION);

    q->model = xstrdup(model);
    q->prompt = xstrdup(prompt);
    q->prompt_len = strlen(prompt);
    q->max_tokens = max_tokens;
    q->ignore_eos = true;
    q->bytes = 1000;
    snprintf(q->client, sizeof q->client, "test");
    rig_greedy(q);
    return q;
}

struct request *rig_chat(const char *model, const char *text, int64_t max_tokens)
{
    struct request *q = rig_completion(model, "", max_tokens);

    q->kind = REQUEST_CHAT;
    q->messages = json_pack("[{s:s, s:s}]", "role", "user", "content", text);
    return q;
}

static void take_logprobs(struct told *t, const struct event *ev)
{
    for (size_t i = 0; i < ev->n_logprobs; i++) {
        const struct token_logprob *lp = &ev->logprobs[i];

        if (lp->text_offset > t->text[0].len + ev->text.len)
            t->offsets_wrong = true;
        str_add(&t->logprob_text, lp->text.p, lp->text.len);
        t->worst_logprob = MIN(t->worst_logprob, lp->logprob);
        ck_assert(lp->n_top == 0 || lp->top[0].logprob >= lp->logprob);
        t->n_logprobs++;
    }
}

static void on_event(void *arg, const struct event *ev)
{
    struct told *t = arg;

    ck_assert(!t->ended);
    ck_assert_uint_eq(ev->request, t->id);
    ck_assert_uint_lt(t->n, RIG_MAX_EVENTS);
    ck_assert_uint_lt(ev->choice, 4);
    t->kinds[t->n++] = ev->kind;
    take_logprobs(t, ev);
    switch (ev->kind) {
    case EVENT_TEXT: str_add(&t->text[ev->choice], ev->text.p, ev->text.len); break;
    case EVENT_REASONING: str_add(&t->reasoning, ev->text.p, ev->text.len); break;
    case EVENT_CHOICE_DONE:
        t->finish[ev->choice] = ev->finish;
        snprintf(t->stop_text, sizeof t->stop_text, "%s", ev->stop_text ? ev->stop_text : "");
        break;
    case EVENT_DONE:
    case EVENT_FAILED:
        t->ended = true;
        t->usage = ev->usage;
        t->timings = ev->timings;
        snprintf(t->model, sizeof t->model, "%s", ev->model);
        if (ev->sampling)
            t->sampling = *ev->sampling;
        if (ev->error)
            t->error = *ev->error;
        break;
    default: break;
    }
    if (ev->kind == EVENT_TEXT && t->at_text && !t->meddled) {
        t->meddled = true;
        t->at_text(t);
        rig_release(t->rig);
    }
}

int rig_submit(struct rig *r, struct request *take, struct told *t, struct err *err)
{
    void (*at_text)(struct told * t) = t->at_text;

    *t = (struct told){.rig = r, .at_text = at_text};
    if (at_text)
        rig_hold(r);
    return engine_submit(r->e, take, on_event, t, &t->id, err);
}

/*
 * One look at the engine's letters, or a short wait for one, and one step when it is held with no
 * more than `most` bytes in the ledger; false: with more, and it stays there.
 */
static bool turn_below(struct rig *r, int64_t since_ms, size_t most)
{
    struct pollfd p[] = {{.fd = engine_fd(r->e), .events = POLLIN},
                         {.fd = gate.fd, .events = POLLIN}};
    bool stood;

    ck_assert_msg(clock_ms() - since_ms < PATIENCE_MS, "nothing happens any more");
    poll(p, ARRAY_LEN(p), 5);
    /* Asked first: what the engine has posted before it stood there is delivered before it goes on. */
    stood = gate_stands();
    engine_dispatch(r->e);
    if (stood && ledger_used(r->ledger, POOL_RAM) > most)
        return false;
    if (stood)
        gate_let_one_pass();
    return true;
}

static void turn(struct rig *r, int64_t since_ms)
{
    turn_below(r, since_ms, SIZE_MAX);
}

void rig_go_on_until(struct rig *r, size_t bytes)
{
    for (int64_t began = clock_ms(); turn_below(r, began, bytes);)
        continue;
}

void rig_wait(struct rig *r, struct told *t)
{
    size_t seen = t->n;

    /* Patience is for silence: a long answer on a slow machine is no failure. */
    for (int64_t since = clock_ms(); !t->ended;) {
        turn(r, since);
        if (t->n != seen) {
            seen = t->n;
            since = clock_ms();
        }
    }
}

void rig_run(struct rig *r, struct request *take, struct told *t)
{
    struct err err;

    ck_assert_msg(rig_submit(r, take, t, &err) == 0, "%s", err.text);
    rig_wait(r, t);
}

void told_clear(struct told *t)
{
    for (size_t i = 0; i < 4; i++)
        str_clear(&t->text[i]);
    str_clear(&t->reasoning);
    str_clear(&t->logprob_text);
}

bool told_has(const struct told *t, enum event_kind kind)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->kinds[i] == kind)
            return true;
    return false;
}

static void on_progress(void *arg, const char *step, size_t done, size_t total)
{
    struct answer *a = arg;

    ck_assert(step && done <= total);
    a->n_progress++;
}

static void on_done(void *arg, json_t *result, const struct err *error)
{
    struct answer *a = arg;

    ck_assert(!a->ended);
    a->ended = true;
    a->failed = error != NULL;
    if (error)
        a->error = *error;
    a->result = json_incref(result);
}

struct job_sink rig_sink(struct rig *r, struct answer *a)
{
    *a = (struct answer){.rig = r};
    return (struct job_sink){on_progress, on_done, a};
}

void rig_wait_job(struct rig *r, struct answer *a)
{
    for (int64_t began = clock_ms(); !a->ended;)
        turn(r, began);
}

void answer_clear(struct answer *a)
{
    json_decref(a->result);
    a->result = NULL;
}

static void load(struct rig *r, const char *name, int pin)
{
    struct load_spec spec = {.target = name, .ttl_ms = -1, .pin = pin};
    struct answer a;
    struct job_sink sink = rig_sink(r, &a);
    struct err err;

    ck_assert_msg(engine_load(r->e, &spec, &sink, &err) > 0, "%s", err.text);
    rig_wait_job(r, &a);
    ck_assert_msg(!a.failed, "%s", a.error.text);
    answer_clear(&a);
}

void rig_load(struct rig *r, const char *name)
{
    load(r, name, -1);
}

void rig_load_pinned(struct rig *r, const char *name)
{
    load(r, name, 1);
}

enum model_state rig_state(struct rig *r, const char *name)
{
    struct model_status st;
    struct err err;

    ck_assert_msg(engine_model(r->e, name, &st, &err) == 0, "%s", err.text);
    return st.state;
}

void rig_wait_state(struct rig *r, const char *name, enum model_state state)
{
    for (int64_t began = clock_ms(); rig_state(r, name) != state;)
        turn(r, began);
}

size_t rig_model_bytes(struct rig *r, const char *name)
{
    struct model_status st;
    struct err err;

    ck_assert_int_eq(engine_model(r->e, name, &st, &err), 0);
    return st.charged_bytes;
}
