/* The ledger under the engine: refusals at every place, and a budget that changes while a token is made. */
#include <check.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/alloc.h"
#include "daemon/model/model.h"
#include "tests/support/tiny_model.h"
#include "tests/unit/engine/rig.h"

TCase *tcase_engine_memory(void);

/*
 * Every reservation of a request is refused once: it fails with one error, and
 * the ledger holds what the model takes, if it came so far, and nothing else.
 */
static void refuse_at_each(struct rig *r,
                           struct request *(*make)(const char *, const char *, int64_t))
{
    bool passed = false;
    long n = 0;

    for (; !passed && n < 64; n++) {
        struct told t = {0};
        struct err err;
        int rc;

        ledger_refuse_after(r->ledger, n);
        rc = rig_submit(r, make("m0", "hello", 3), &t, &err);
        if (rc < 0) {
            ck_assert_int_eq(rc, -ERR_NOMEM);
        } else {
            rig_wait(r, &t);
            passed = t.error.kind == ERR_NONE;
            if (!passed) {
                ck_assert_int_eq(t.error.kind, ERR_NOMEM);
                ck_assert_int_eq(t.kinds[t.n - 1], EVENT_FAILED);
            }
        }
        ledger_refuse_after(r->ledger, -1);
        ck_assert_uint_eq(ledger_used(r->ledger, POOL_RAM), rig_model_bytes(r, "m0"));
        told_clear(&t);
    }
    ck_assert(passed);
    ck_assert_int_gt(n, 2);
}

START_TEST(a_refused_charge_of_a_load_leaves_nothing_behind)
{
    struct rig r;

    rig_open(&r, 1, 0, NULL);
    refuse_at_each(&r, rig_completion);
    rig_close(&r);
}
END_TEST

START_TEST(a_refused_charge_of_a_completion_leaves_nothing_behind)
{
    struct rig r;

    rig_open(&r, 1, 0, NULL);
    rig_load(&r, "m0");
    refuse_at_each(&r, rig_completion);
    rig_close(&r);
}
END_TEST

START_TEST(a_refused_charge_of_a_conversation_leaves_nothing_behind)
{
    struct rig r;

    rig_open(&r, 1, 0, NULL);
    rig_load(&r, "m0");
    refuse_at_each(&r, rig_chat);
    rig_close(&r);
}
END_TEST

START_TEST(a_chat_template_is_text_of_its_model_until_that_leaves)
{
    struct ledger_report before, after;
    struct told t = {0};
    struct rig r;

    rig_open(&r, 1, 0, NULL);
    rig_load(&r, "m0");
    ledger_report(r.ledger, POOL_RAM, &before);
    rig_run(&r, rig_chat("m0", "hello", 2), &t);
    ck_assert_msg(t.error.kind == ERR_NONE, "%s", t.error.text);
    ledger_report(r.ledger, POOL_RAM, &after);
    ck_assert_uint_gt(after.accounts[ACCOUNT_TEXT], before.accounts[ACCOUNT_TEXT]);
    ck_assert_uint_ge(after.account_peaks[ACCOUNT_REQUESTS],
                      after.accounts[ACCOUNT_TEXT] - before.accounts[ACCOUNT_TEXT]);
    ck_assert_uint_eq(after.used, rig_model_bytes(&r, "m0"));
    told_clear(&t);
    rig_close(&r);
}
END_TEST

/* Another file in the place of m0, which has not been opened. */
static void replace_file(struct rig *r, const struct tiny_model *o)
{
    struct gguf_writer w = {0};
    struct str bytes = {0};

    tiny_model_build(o, &w);
    gguf_writer_bytes(&w, &bytes);
    ck_assert_int_eq(ftruncate(r->fds[0], 0), 0);
    ck_assert_int_eq(pwrite(r->fds[0], bytes.p, bytes.len, 0), (ssize_t)bytes.len);
    gguf_writer_clear(&w);
    str_clear(&bytes);
}

/* A template is given BOS and EOS as texts, which it gets as JSON. */
START_TEST(special_tokens_of_any_length_are_charged_while_a_template_is_rendered)
{
    const struct tiny_model o = {.family = "llama", .bos_bytes = (size_t)5 << 20};
    struct ledger_report report;
    struct told t = {0};
    struct rig r;

    rig_open(&r, 1, 0, NULL);
    replace_file(&r, &o);
    rig_load(&r, "m0");
    rig_run(&r, rig_chat("m0", "hello", 2), &t);
    ck_assert_msg(t.error.kind == ERR_NONE, "%s", t.error.text);
    ledger_report(r.ledger, POOL_RAM, &report);
    ck_assert_uint_ge(report.account_peaks[ACCOUNT_REQUESTS], 2 * o.bos_bytes);
    told_clear(&t);
    rig_close(&r);
}
END_TEST

/* A rig with one model whose BOS, or whose last word, is long. */
static void open_long(struct rig *r, size_t bos_bytes, size_t word_bytes)
{
    const struct tiny_model o = {
        .family = "llama", .n_ctx = 512, .bos_bytes = bos_bytes, .word_bytes = word_bytes};

    rig_open(r, 1, 0, NULL);
    replace_file(r, &o);
    rig_load(r, "m0");
}

static struct request *one_word(size_t bytes)
{
    char *text = xmalloc(bytes + 1);
    struct request *q;

    memset(text, 'x', bytes);
    text[bytes] = '\0';
    q = rig_completion("m0", text, 4);
    free(text);
    return q;
}

static size_t peak_of_requests(struct rig *r)
{
    struct ledger_report report;

    ledger_report(r->ledger, POOL_RAM, &report);
    return report.account_peaks[ACCOUNT_REQUESTS];
}

/* A token is so long that the text might be few. */
START_TEST(what_encoding_a_long_word_takes_is_charged_while_it_goes_on)
{
    const size_t bytes = (size_t)1 << 20;
    struct told t = {0};
    struct rig r;

    open_long(&r, (size_t)64 << 10, 0);
    rig_run(&r, one_word(bytes), &t);
    ck_assert_int_eq(t.error.kind, ERR_TOO_LARGE);
    ck_assert_ptr_nonnull(strstr(t.error.text, "has 1048576 tokens"));
    ck_assert_uint_ge(peak_of_requests(&r), 40 * bytes);
    ck_assert_uint_eq(ledger_used(r.ledger, POOL_RAM), rig_model_bytes(&r, "m0"));
    told_clear(&t);
    rig_close(&r);
}
END_TEST

START_TEST(a_budget_that_an_encoding_does_not_fit_into_refuses_it)
{
    struct told t = {0};
    struct err err;
    struct rig r;

    open_long(&r, (size_t)64 << 10, 0);
    ck_assert_int_eq(ledger_set_budget(r.ledger, POOL_RAM,
                                       ledger_used(r.ledger, POOL_RAM) + ((size_t)24 << 20), &err),
                     0);
    rig_run(&r, one_word((size_t)1 << 20), &t);
    ck_assert_int_eq(t.error.kind, ERR_NOMEM);
    ck_assert_uint_eq(ledger_used(r.ledger, POOL_RAM), rig_model_bytes(&r, "m0"));
    told_clear(&t);
    rig_run(&r, one_word(300), &t);
    ck_assert_msg(t.error.kind == ERR_NONE, "%s", t.error.text);
    told_clear(&t);
    rig_close(&r);
}
END_TEST

START_TEST(a_text_that_is_too_long_however_it_is_cut_is_not_encoded)
{
    const size_t bytes = (size_t)1 << 20;
    struct told t = {0};
    struct rig r;
    struct request *q = rig_chat("m0", "", 4);

    open_long(&r, 64, 0);
    rig_run(&r, one_word(bytes), &t);
    ck_assert_int_eq(t.error.kind, ERR_TOO_LARGE);
    ck_assert_ptr_nonnull(strstr(t.error.text, "has at least 16384 tokens"));
    ck_assert_uint_le(peak_of_requests(&r), bytes);
    told_clear(&t);
    json_decref(q->messages);
    q->messages =
        json_pack("[{s:s, s:o}]", "role", "user", "content", json_sprintf("%0*d", (int)bytes, 0));
    rig_run(&r, q, &t);
    ck_assert_int_eq(t.error.kind, ERR_TOO_LARGE);
    ck_assert_ptr_nonnull(strstr(t.error.text, "has at least "));
    told_clear(&t);
    rig_close(&r);
}
END_TEST

static struct request *embedding_of(size_t bytes)
{
    struct request *q = request_create(REQUEST_EMBEDDING);

    q->model = xstrdup("m0");
    q->inputs = XNEW_ARRAY(struct request_input, 1);
    q->n_inputs = 1;
    q->inputs[0].text = xmalloc(bytes + 1);
    q->inputs[0].len = bytes;
    memset(q->inputs[0].text, 'x', bytes);
    q->inputs[0].text[bytes] = '\0';
    return q;
}

START_TEST(what_is_to_be_embedded_is_checked_and_charged_as_a_prompt_is)
{
    const size_t bytes = (size_t)1 << 20;
    struct tiny_model o = {.family = "llama", .n_ctx = 512, .pooling = 1};
    struct told t = {0};
    struct rig r;

    o.bos_bytes = _i ? (size_t)64 << 10 : 64;
    rig_open(&r, 1, 0, NULL);
    replace_file(&r, &o);
    rig_load(&r, "m0");
    rig_run(&r, embedding_of(bytes), &t);
    ck_assert_int_eq(t.error.kind, ERR_TOO_LARGE);
    ck_assert_ptr_nonnull(
        strstr(t.error.text, _i ? "has 1048576 tokens" : "has at least 16384 tokens"));
    ck_assert(_i == (peak_of_requests(&r) >= 40 * bytes));
    told_clear(&t);
    rig_run(&r, embedding_of(512), &t);
    ck_assert_msg(t.error.kind == ERR_NONE, "%s", t.error.text);
    ck_assert_uint_eq(ledger_used(r.ledger, POOL_RAM), rig_model_bytes(&r, "m0"));
    told_clear(&t);
    rig_close(&r);
}
END_TEST

START_TEST(a_cancel_is_heard_while_a_text_is_encoded)
{
    const size_t bytes = (size_t)4 << 20;
    struct told t = {0};
    struct err err;
    struct rig r;
    size_t idle;

    open_long(&r, (size_t)64 << 10, 0);
    idle = ledger_used(r.ledger, POOL_RAM);
    ck_assert_int_eq(rig_submit(&r, one_word(bytes), &t, &err), 0);
    /* Its pairs are charged, and have yet to be looked up. */
    while (ledger_used(r.ledger, POOL_RAM) < idle + 40 * bytes)
        sched_yield();
    ck_assert_int_eq(engine_cancel(r.e, t.id, &err), 0);
    rig_wait(&r, &t);
    ck_assert_int_eq(t.error.kind, ERR_CANCELLED);
    told_clear(&t);
    rig_close(&r);
}
END_TEST

static struct request *long_words(size_t n)
{
    struct request *q = rig_completion("m0", "", 0);

    q->echo = true;
    q->n_prompt_ids = n;
    q->prompt_ids = XNEW_ARRAY(int32_t, n);
    for (size_t i = 0; i < n; i++)
        q->prompt_ids[i] = TINY_LONG_WORD;
    return q;
}

START_TEST(the_text_of_ids_that_are_echoed_is_charged)
{
    const size_t word = (size_t)100 << 10;
    struct told t = {0};
    struct rig r;

    open_long(&r, 0, word);
    rig_run(&r, long_words(40), &t);
    ck_assert_msg(t.error.kind == ERR_NONE, "%s", t.error.text);
    ck_assert_uint_eq(t.text[0].len, 40 * word);
    ck_assert_uint_ge(peak_of_requests(&r), 40 * word);
    told_clear(&t);
    rig_close(&r);
}
END_TEST

START_TEST(ids_that_are_too_many_are_refused_before_their_text_is_made)
{
    const size_t word = (size_t)100 << 10;
    struct rusage before, after;
    struct told t = {0};
    struct rig r;

    open_long(&r, 0, word);
    getrusage(RUSAGE_SELF, &before);
    rig_run(&r, long_words(2000), &t);
    getrusage(RUSAGE_SELF, &after);
    ck_assert_int_eq(t.error.kind, ERR_TOO_LARGE);
    ck_assert_ptr_nonnull(strstr(t.error.text, "has 2000 tokens"));
    ck_assert_int_lt(after.ru_maxrss - before.ru_maxrss, 64 << 10); /* in KiB */
    ck_assert_uint_le(peak_of_requests(&r), word);
    told_clear(&t);
    rig_close(&r);
}
END_TEST

/* All that is shown of a file is as long as the file says. */
START_TEST(what_is_shown_of_a_file_is_charged_until_it_is_handed_on)
{
    struct str text = {0};
    struct tiny_model o = {.family = "llama"};
    struct ledger_report report;
    struct job_sink sink;
    struct answer a;
    struct err err;
    struct rig r;

    for (size_t i = 0; i < (size_t)1 << 20; i++)
        str_addc(&text, 'a' + (char)(i % 26));
    o.chat_template = str_text(&text);
    rig_open(&r, 1, 0, NULL);
    replace_file(&r, &o);
    sink = rig_sink(&r, &a);
    ck_assert_int_gt(engine_show(r.e, "m0", &sink, &err), 0);
    rig_wait_job(&r, &a);
    ck_assert_msg(!a.failed, "%s", a.error.text);
    answer_clear(&a);
    ledger_report(r.ledger, POOL_RAM, &report);
    ck_assert_uint_ge(report.account_peaks[ACCOUNT_REQUESTS], 9 * text.len);
    ck_assert_uint_eq(report.used, 0);
    ck_assert_int_eq(ledger_set_budget(r.ledger, POOL_RAM, 9 * text.len, &err), 0);
    sink = rig_sink(&r, &a);
    ck_assert_int_gt(engine_show(r.e, "m0", &sink, &err), 0);
    rig_wait_job(&r, &a);
    ck_assert(a.failed);
    ck_assert_int_eq(a.error.kind, ERR_NOMEM);
    ck_assert_uint_eq(ledger_used(r.ledger, POOL_RAM), 0);
    rig_close(&r);
    str_clear(&text);
}
END_TEST

static int set_budget(struct rig *r, size_t bytes, enum budget_force force, struct answer *a)
{
    struct job_sink sink = rig_sink(r, a);
    struct err err;
    int64_t id = engine_set_budget(r->e, bytes, force, &sink, &err);

    if (id < 0)
        return (int)err.kind;
    rig_wait_job(r, a);
    return a->failed ? (int)a->error.kind : 0;
}

static void change_budget(struct told *t)
{
    size_t used = ledger_used(t->rig->ledger, POOL_RAM);
    struct answer a;

    ck_assert_int_eq(set_budget(t->rig, used + (1 << 20), BUDGET_KEEP, &a), 0);
    answer_clear(&a);
    ck_assert_uint_eq(ledger_budget(t->rig->ledger, POOL_RAM), used + (1 << 20));
    /* Below what is in use, and what is in use is busy. */
    ck_assert_int_eq(set_budget(t->rig, used / 2, BUDGET_KEEP, &a), ERR_CONFLICT);
    ck_assert_int_eq(set_budget(t->rig, used / 2, BUDGET_IDLE, &a), ERR_CONFLICT);
    ck_assert(!t->ended);
}

START_TEST(the_budget_changes_while_a_token_is_made)
{
    struct rig r;
    struct told t = {.at_text = change_budget};

    rig_open(&r, 1, 0, NULL);
    rig_run(&r, rig_completion("m0", "long", 400), &t);
    ck_assert(t.meddled);
    ck_assert_msg(t.error.kind == ERR_NONE, "%s", t.error.text);
    ck_assert_uint_eq(t.usage.completion_tokens, 400);
    told_clear(&t);
    rig_close(&r);
}
END_TEST

/* Below the floor of what is busy, by what is to go for it. */
static void take_its_memory(struct told *t)
{
    struct answer a;

    ck_assert_int_eq(set_budget(t->rig, 1 << 20, BUDGET_IDLE, &a), ERR_CONFLICT);
    ck_assert(!t->ended);
    ck_assert_int_eq(set_budget(t->rig, 1 << 20, BUDGET_RUNNING, &a), 0);
    ck_assert_int_eq(json_integer_value(json_object_get(a.result, "unloaded")), 2);
    answer_clear(&a);
    ck_assert_uint_eq(ledger_budget(t->rig->ledger, POOL_RAM), 1 << 20);
    ck_assert_uint_le(ledger_used(t->rig->ledger, POOL_RAM), 1 << 20);
}

START_TEST(a_budget_below_the_floor_of_what_runs_ends_it_when_that_is_asked)
{
    struct rig r;
    struct told t = {.at_text = take_its_memory};

    rig_open(&r, 2, 0, NULL);
    rig_load(&r, "m1");
    rig_run(&r, rig_completion("m0", "long", 400), &t);
    ck_assert(t.meddled);
    ck_assert_int_eq(t.error.kind, ERR_CANCELLED);
    ck_assert_ptr_nonnull(strstr(t.error.text, "budget"));
    ck_assert_int_eq(rig_state(&r, "m0"), MODEL_LISTED);
    ck_assert_int_eq(rig_state(&r, "m1"), MODEL_LISTED);
    told_clear(&t);
    rig_close(&r);
}
END_TEST

static void take_memory_of_a_pinned_one(struct told *t)
{
    struct answer a;

    ck_assert_int_eq(set_budget(t->rig, 1 << 20, BUDGET_RUNNING, &a), ERR_CONFLICT);
    ck_assert(!t->ended);
}

START_TEST(nothing_is_ended_for_a_budget_that_a_pinned_model_does_not_leave_room_for)
{
    struct told t = {.at_text = take_memory_of_a_pinned_one};
    struct rig r;

    rig_open(&r, 1, 0, NULL);
    rig_load_pinned(&r, "m0");
    rig_run(&r, rig_completion("m0", "long", 200), &t);
    ck_assert(t.meddled);
    ck_assert_msg(t.error.kind == ERR_NONE, "%s", t.error.text);
    ck_assert_uint_eq(t.usage.completion_tokens, 200);
    told_clear(&t);
    rig_close(&r);
}
END_TEST

START_TEST(a_lower_budget_unloads_idle_models_only_with_force)
{
    struct rig r;
    struct answer a;
    struct told t = {0};
    size_t each;

    rig_open(&r, 2, 0, NULL);
    rig_load(&r, "m0");
    each = rig_model_bytes(&r, "m0");
    rig_load(&r, "m1");
    rig_run(&r, rig_completion("m0", "used later", 2), &t);
    ck_assert_int_eq(set_budget(&r, each * 3 / 2, BUDGET_KEEP, &a), ERR_CONFLICT);
    ck_assert_int_eq(rig_state(&r, "m1"), MODEL_READY);
    ck_assert_int_eq(set_budget(&r, each * 3 / 2, BUDGET_IDLE, &a), 0);
    ck_assert_int_eq(json_integer_value(json_object_get(a.result, "unloaded")), 1);
    answer_clear(&a);
    ck_assert_int_eq(rig_state(&r, "m0"), MODEL_READY);
    ck_assert_int_eq(rig_state(&r, "m1"), MODEL_LISTED);
    told_clear(&t);
    rig_close(&r);
}
END_TEST

START_TEST(force_unloads_nobody_when_it_would_not_be_enough)
{
    struct rig r;
    struct answer a;

    rig_open(&r, 2, 0, NULL);
    rig_load_pinned(&r, "m0");
    rig_load(&r, "m1");
    ck_assert_int_eq(set_budget(&r, 4096, BUDGET_IDLE, &a), ERR_CONFLICT);
    ck_assert_int_eq(rig_state(&r, "m1"), MODEL_READY);
    rig_close(&r);
}
END_TEST

/* -- a budget that is cut while a model is being read ------------------------------------ */

/* m0, and a model of more layers that can stream: all of it and the least, in bytes. */
struct reading {
    struct rig r;
    int fd;
    size_t all, floor;
    struct answer load, budget;
};

static void open_reading(struct reading *t)
{
    static char name[] = "big";
    struct tiny_model m = {.family = "llama", .seed = 3, .n_layers = 8, .n_ctx = 512};
    struct engine_model_entry entry = {.name = name, .ttl_ms = -1, .n_ctx = 512};
    struct model_options o = {.n_ctx = 512, .n_out = 1};
    struct model_plan p;
    struct model *big;
    struct err err;

    *t = (struct reading){0};
    rig_open(&t->r, 1, 0, NULL);
    t->fd = tiny_model_memfd(&m);
    entry.path = gguf_writer_fd_path(t->fd);
    ck_assert_int_eq(engine_know(t->r.e, &entry, &err), 0);
    ck_assert_int_eq(model_open(entry.path, &big, &err), 0);
    ck_assert_int_eq(model_plan(big, &o, t->r.cpu.ops, t->r.cpu.be, SIZE_MAX, &p, &err), 0);
    model_close(big);
    free(entry.path);
    t->all = p.all;
    t->floor = p.floor;
    ck_assert_uint_lt(t->floor, t->all / 2);
}

static void close_reading(struct reading *t)
{
    answer_clear(&t->load);
    answer_clear(&t->budget);
    rig_close(&t->r);
    close(t->fd);
}

/* The load stands where that many bytes are charged when the budget is set; both end. */
static void cut_at(struct reading *t, size_t charged, size_t to, enum budget_force force)
{
    struct load_spec spec = {.target = "big", .ttl_ms = -1, .pin = -1};
    struct job_sink sink = rig_sink(&t->r, &t->load);
    struct err err;

    rig_hold(&t->r);
    ck_assert_int_gt(engine_load(t->r.e, &spec, &sink, &err), 0);
    rig_go_on_until(&t->r, charged);
    sink = rig_sink(&t->r, &t->budget);
    ck_assert_msg(engine_set_budget(t->r.e, to, force, &sink, &err) > 0, "%s", err.text);
    rig_release(&t->r);
    rig_wait_job(&t->r, &t->budget);
    rig_wait_job(&t->r, &t->load);
}

static void check_loaded_within(struct reading *t, size_t bytes)
{
    ck_assert_msg(!t->budget.failed, "%s", t->budget.error.text);
    ck_assert_msg(!t->load.failed, "%s", t->load.error.text);
    ck_assert_uint_eq(ledger_budget(t->r.ledger, POOL_RAM), bytes);
    ck_assert_uint_le(ledger_used(t->r.ledger, POOL_RAM), bytes);
    ck_assert_int_eq(rig_state(&t->r, "big"), MODEL_READY);
}

START_TEST(a_budget_cut_while_a_model_is_read_has_it_read_again_into_what_is_left)
{
    struct reading t;
    size_t to;

    open_reading(&t);
    to = (t.floor + t.all) / 2;
    cut_at(&t, to, to, BUDGET_KEEP);
    check_loaded_within(&t, to);
    ck_assert_uint_ge(rig_model_bytes(&t.r, "big"), t.floor / 2);
    close_reading(&t);
}
END_TEST

START_TEST(a_budget_cut_before_a_load_has_reserved_all_of_it_is_what_it_is_read_into)
{
    struct reading t;
    size_t to;

    open_reading(&t);
    to = (t.floor + t.all) / 2;
    cut_at(&t, 0, to, BUDGET_KEEP);
    check_loaded_within(&t, to);
    close_reading(&t);
}
END_TEST

START_TEST(a_budget_below_the_floor_of_what_is_read_is_refused_and_it_is_read_on)
{
    struct reading t;
    struct err err;

    open_reading(&t);
    ck_assert_int_eq(ledger_set_budget(t.r.ledger, POOL_RAM, 2 * t.all, &err), 0);
    cut_at(&t, t.floor, t.floor - 1, BUDGET_IDLE);
    ck_assert(t.budget.failed);
    ck_assert_int_eq(t.budget.error.kind, ERR_CONFLICT);
    ck_assert_ptr_nonnull(strstr(t.budget.error.text, "needs at least"));
    ck_assert_msg(!t.load.failed, "%s", t.load.error.text);
    ck_assert_uint_eq(ledger_budget(t.r.ledger, POOL_RAM), 2 * t.all);
    ck_assert_uint_gt(rig_model_bytes(&t.r, "big"), t.all / 2);
    close_reading(&t);
}
END_TEST

START_TEST(an_idle_model_leaves_for_one_that_is_read_again_only_with_force)
{
    struct reading t;
    struct err err;
    size_t to, m0;

    open_reading(&t);
    rig_load(&t.r, "m0");
    m0 = rig_model_bytes(&t.r, "m0");
    to = t.floor + m0 / 2;
    ck_assert_int_eq(ledger_set_budget(t.r.ledger, POOL_RAM, 2 * t.all + m0, &err), 0);
    cut_at(&t, t.all / 2 + m0, to, BUDGET_IDLE);
    check_loaded_within(&t, to);
    ck_assert_int_eq(json_integer_value(json_object_get(t.budget.result, "unloaded")), 1);
    ck_assert_int_eq(rig_state(&t.r, "m0"), MODEL_LISTED);
    close_reading(&t);
}
END_TEST

START_TEST(a_load_is_ended_for_a_budget_below_its_floor_when_that_is_asked)
{
    struct reading t;

    open_reading(&t);
    cut_at(&t, t.floor, t.floor / 2, BUDGET_RUNNING);
    ck_assert_msg(!t.budget.failed, "%s", t.budget.error.text);
    ck_assert_int_eq(t.load.error.kind, ERR_CANCELLED);
    ck_assert_uint_eq(ledger_used(t.r.ledger, POOL_RAM), 0);
    ck_assert_uint_eq(ledger_budget(t.r.ledger, POOL_RAM), t.floor / 2);
    close_reading(&t);
}
END_TEST

START_TEST(a_context_without_a_number_is_what_the_budget_can_hold)
{
    static char name[] = "free";
    struct engine_model_entry entry = {.name = name, .ttl_ms = -1};
    struct rig r;
    struct model_status st;
    struct told t = {0};
    struct err err;
    size_t each;

    rig_open(&r, 1, 0, NULL);
    rig_load(&r, "m0");
    each = rig_model_bytes(&r, "m0");
    entry.path = r.paths[0];
    ck_assert_int_eq(engine_know(r.e, &entry, &err), 0);
    /* Not enough for both: the idle one leaves, and a request still finds room beside the context. */
    ck_assert_int_eq(ledger_set_budget(r.ledger, POOL_RAM, each * 3 / 2, &err), 0);
    rig_run(&r, rig_completion("free", "hello", 4), &t);
    ck_assert_msg(t.error.kind == ERR_NONE, "%s", t.error.text);
    ck_assert_int_eq(engine_model(r.e, "free", &st, &err), 0);
    ck_assert_uint_gt(st.n_ctx, 0);
    ck_assert_uint_le(st.n_ctx, st.n_ctx_train);
    ck_assert_int_eq(rig_state(&r, "m0"), MODEL_LISTED);
    told_clear(&t);
    rig_close(&r);
}
END_TEST

START_TEST(an_idle_model_leaves_for_a_request_of_another)
{
    struct rig r;
    struct told t = {0};
    struct err err;

    rig_open(&r, 2, 0, NULL);
    rig_load(&r, "m0");
    rig_load(&r, "m1");
    /* The two fit; what the request itself takes does not beside them. */
    ck_assert_int_eq(
        ledger_set_budget(r.ledger, POOL_RAM, ledger_used(r.ledger, POOL_RAM) + 2000, &err), 0);
    rig_run(&r, rig_completion("m0", "hello", 3), &t);
    ck_assert_msg(t.error.kind == ERR_NONE, "%s", t.error.text);
    ck_assert_int_eq(rig_state(&r, "m1"), MODEL_LISTED);
    told_clear(&t);
    rig_close(&r);
}
END_TEST

TCase *tcase_engine_memory(void)
{
    TCase *tc = tcase_create("memory");

    tcase_add_test(tc, a_refused_charge_of_a_load_leaves_nothing_behind);
    tcase_add_test(tc, a_refused_charge_of_a_completion_leaves_nothing_behind);
    tcase_add_test(tc, a_refused_charge_of_a_conversation_leaves_nothing_behind);
    tcase_add_test(tc, a_chat_template_is_text_of_its_model_until_that_leaves);
    tcase_add_test(tc, special_tokens_of_any_length_are_charged_while_a_template_is_rendered);
    tcase_add_test(tc, what_encoding_a_long_word_takes_is_charged_while_it_goes_on);
    tcase_add_test(tc, a_budget_that_an_encoding_does_not_fit_into_refuses_it);
    tcase_add_test(tc, a_text_that_is_too_long_however_it_is_cut_is_not_encoded);
    tcase_add_loop_test(tc, what_is_to_be_embedded_is_checked_and_charged_as_a_prompt_is, 0, 2);
    tcase_add_test(tc, a_cancel_is_heard_while_a_text_is_encoded);
    tcase_add_test(tc, the_text_of_ids_that_are_echoed_is_charged);
    tcase_add_test(tc, ids_that_are_too_many_are_refused_before_their_text_is_made);
    tcase_add_test(tc, what_is_shown_of_a_file_is_charged_until_it_is_handed_on);
    tcase_add_test(tc, the_budget_changes_while_a_token_is_made);
    tcase_add_test(tc, a_budget_below_the_floor_of_what_runs_ends_it_when_that_is_asked);
    tcase_add_test(tc, nothing_is_ended_for_a_budget_that_a_pinned_model_does_not_leave_room_for);
    tcase_add_test(tc, a_lower_budget_unloads_idle_models_only_with_force);
    tcase_add_test(tc, force_unloads_nobody_when_it_would_not_be_enough);
    tcase_add_test(tc, a_budget_cut_while_a_model_is_read_has_it_read_again_into_what_is_left);
    tcase_add_test(tc, a_budget_cut_before_a_load_has_reserved_all_of_it_is_what_it_is_read_into);
    tcase_add_test(tc, a_budget_below_the_floor_of_what_is_read_is_refused_and_it_is_read_on);
    tcase_add_test(tc, an_idle_model_leaves_for_one_that_is_read_again_only_with_force);
    tcase_add_test(tc, a_load_is_ended_for_a_budget_below_its_floor_when_that_is_asked);
    tcase_add_test(tc, an_idle_model_leaves_for_a_request_of_another);
    tcase_add_test(tc, a_context_without_a_number_is_what_the_budget_can_hold);
    return tc;
}
