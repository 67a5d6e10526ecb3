/*
 * A mixture that streams, from its load over a prompt to its last token, and
 * everything that can be refused it or fail under it, once each: that load or
 * that batch fails with one sentence, the ledger is right at every moment, and
 * the answer goes on with the bits of an undisturbed one.
 */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/alloc.h"
#include "tests/support/faulty.h"
#include "tests/unit/model/tiny.h"

TCase *tcase_model_faults(void);

#define N_PROMPT 24
#define N        30

static const struct tiny_model mixture = {.family = "qwen3moe", .n_layers = 3, .seed = 5};
static int32_t ids[N];
static float *want; /* [N][TINY_N_VOCAB] */
static size_t tight;

/* Fails of a run, of either kind. */
struct failed {
    unsigned loads, batches;
    enum err_kind kind;
    char text[512];
};

static struct model_options options_of(const struct reader_faults *faults)
{
    return (struct model_options){
        .n_ctx = 64, .n_batch = N_PROMPT, .n_out = N_PROMPT, .bytes = tight, .faults = faults};
}

static void set_up(void)
{
    struct model_options o = {.n_ctx = 64, .n_batch = N_PROMPT, .n_out = N_PROMPT};
    struct tiny_engine e;
    struct model_plan p;
    struct err err;

    tiny_ids(ids, N);
    e = tiny_load(&mixture, &o, 1, NULL);
    want = tiny_logits(&e, ids, N, 1);
    ck_assert_int_eq(model_plan(e.m, &o, e.cpu.ops, e.cpu.be, SIZE_MAX, &p, &err), 0);
    tight = p.floor + (p.all - p.floor) / 4;
    tiny_close(&e);
}

static void tear_down(void)
{
    free(want);
}

static void note(struct failed *f, unsigned *count, const struct err *err)
{
    *count += 1;
    f->kind = err->kind;
    snprintf(f->text, sizeof f->text, "%s", err->text);
}

/* Again until it works; twice at most, as one thing fails. */
static void eval(struct tiny_engine *e, size_t from, size_t n, struct failed *f)
{
    static const int32_t rows[N_PROMPT] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                                           12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23};
    struct err err = {0};
    const float *logits;
    size_t at = from, failures = 0;

    while (at < from + n) {
        size_t k = MIN(from + n - at, model_n_batch(e->m));

        if (model_eval(e->m, ids + at, k, rows, k, NULL, &logits, &err) < 0) {
            note(f, &f->batches, &err);
            ledger_refuse_after(e->ledger, -1);
            ck_assert_uint_le(++failures, 1);
            ck_assert_uint_eq(sequence_length(model_sequence(e->m)), at);
            continue;
        }
        ck_assert_int_eq(
            memcmp(logits, want + at * TINY_N_VOCAB, k * TINY_N_VOCAB * sizeof *logits), 0);
        at += k;
    }
    ck_assert_uint_eq(ledger_used(e->ledger, POOL_RAM), model_held_bytes(e->m));
}

/* Load, prompt, answer; where it is cut and raised, a refusal of that is no failure. */
static struct failed answer(struct tiny_engine *e, const struct model_options *o, bool resize)
{
    struct failed f = {0};
    struct err err = {0};

    while (model_load(e->m, o, e->ledger, e->cpu.ops, e->cpu.be, NULL, NULL, NULL, &err) < 0) {
        note(&f, &f.loads, &err);
        ck_assert_uint_eq(ledger_used(e->ledger, POOL_RAM), 0);
        ck_assert_uint_le(f.loads, 1);
        ledger_refuse_after(e->ledger, -1);
    }
    eval(e, 0, N_PROMPT, &f);
    for (size_t i = N_PROMPT; i < N; i++) {
        if (resize && i == N_PROMPT + 2)
            model_resize(e->m, model_floor_bytes(e->m), &err);
        if (resize && i == N_PROMPT + 4)
            model_resize(e->m, tight, &err);
        eval(e, i, 1, &f);
    }
    return f;
}

static struct tiny_engine open_engine(void)
{
    return (struct tiny_engine){
        .cpu = cpu_backend_open(1, NULL), .ledger = ledger_create(), .m = tiny_must_open(&mixture)};
}

START_TEST(each_charge_refused_once_fails_one_load_or_nothing_and_the_answer_is_right)
{
    struct model_options o = options_of(NULL);
    unsigned loads = 0;
    long n = 0;

    for (;; n++) {
        struct tiny_engine e = open_engine();
        struct ledger_report report;
        struct failed f;

        ledger_refuse_after(e.ledger, n);
        f = answer(&e, &o, true);
        ledger_report(e.ledger, POOL_RAM, &report);
        ck_assert_uint_le(f.loads + f.batches, report.refused);
        if (f.loads + f.batches) {
            ck_assert_int_eq(f.kind, ERR_NOMEM);
            ck_assert_ptr_nonnull(strstr(f.text, "model '"));
        }
        loads += f.loads;
        tiny_close(&e);
        if (!report.refused)
            break;
    }
    ck_assert_uint_ge(loads, 6);
    ck_assert_int_gt(n, 6);
}
END_TEST

/* How a read fails: an error of the drive, and a file that ends. */
static const int errnums[] = {EIO, 0};

START_TEST(each_read_failed_once_fails_one_load_or_one_batch_by_name)
{
    struct faulty fault = {.fail_at = -1};
    const struct reader_faults engine = {.pread = faulty_pread, .arg = &fault};
    struct model_options o = options_of(&engine);
    struct tiny_engine e = open_engine();
    unsigned batches = 0, loads = 0;
    long n_reads;

    answer(&e, &o, false);
    n_reads = fault.n_reads;
    tiny_close(&e);
    ck_assert_int_gt(n_reads, 30);
    for (long n = 0; n < n_reads; n += n < 12 ? 1 : 5) {
        struct failed f;

        fault = (struct faulty){.fail_at = n, .errnum = errnums[_i]};
        e = open_engine();
        f = answer(&e, &o, false);
        /* a read of a load that gives nothing is tried again without O_DIRECT */
        ck_assert_msg(f.loads + f.batches == 1 || (!f.batches && !errnums[_i]),
                      "read %ld: %u loads, %u batches", n, f.loads, f.batches);
        tiny_close(&e);
        if (f.loads + f.batches == 0)
            continue;
        ck_assert_int_eq(f.kind, ERR_IO);
        ck_assert_msg(strstr(f.text, "blk.") || strstr(f.text, "token_embd") ||
                          strstr(f.text, "output"),
                      "read %ld: %s", n, f.text);
        loads += f.loads;
        batches += f.batches;
    }
    ck_assert(loads > 3 || !errnums[_i]);
    ck_assert_uint_gt(batches, 3);
}
END_TEST

START_TEST(reads_that_give_a_little_at_a_time_change_nothing)
{
    struct faulty fault = {.fail_at = -1, .most_bytes = 5000, .eintr_every = 7};
    const struct reader_faults engine = {.pread = faulty_pread, .arg = &fault};
    struct model_options o = options_of(&engine);
    struct tiny_engine e = open_engine();
    struct failed f = answer(&e, &o, true);

    ck_assert_uint_eq(f.loads + f.batches, 0);
    tiny_close(&e);
}
END_TEST

START_TEST(a_file_cut_under_an_answer_fails_batches_until_it_is_whole_again)
{
    struct model_options o = options_of(NULL);
    struct tiny_engine e = {.cpu = cpu_backend_open(1, NULL), .ledger = ledger_create()};
    struct gguf_writer w = {0};
    struct err err = {0};
    struct failed f = {0};
    const int32_t row = 0;
    const float *logits;
    off_t size;
    char *path, *copy;
    int fd, r = 0;

    tiny_model_build(&mixture, &w);
    fd = gguf_writer_memfd(&w);
    gguf_writer_clear(&w);
    path = gguf_writer_fd_path(fd);
    size = lseek(fd, 0, SEEK_END);
    copy = xmalloc((size_t)size);
    ck_assert_int_eq(pread(fd, copy, (size_t)size, 0), size);
    ck_assert_int_eq(model_open(path, &e.m, &err), 0);
    ck_assert_int_eq(model_load(e.m, &o, e.ledger, e.cpu.ops, e.cpu.be, NULL, NULL, NULL, &err), 0);
    eval(&e, 0, N_PROMPT, &f);
    ck_assert_int_eq(ftruncate(fd, size / 8), 0);
    for (size_t i = N_PROMPT; i < N && r >= 0; i++) /* what is in slots is still right */
        r = model_eval(e.m, ids + i, 1, &row, 1, NULL, &logits, &err);
    ck_assert_int_eq(r, -ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.text, "blk."));
    ck_assert_uint_eq(ledger_used(e.ledger, POOL_RAM), model_held_bytes(e.m));
    ck_assert_int_eq(pwrite(fd, copy, (size_t)size, 0), size);
    for (size_t i = sequence_length(model_sequence(e.m)); i < N; i++)
        eval(&e, i, 1, &f);
    ck_assert_uint_eq(f.loads + f.batches, 0);
    tiny_close(&e);
    free(copy);
    free(path);
    close(fd);
}
END_TEST

TCase *tcase_model_faults(void)
{
    TCase *t = tcase_create("faults");

    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, each_charge_refused_once_fails_one_load_or_nothing_and_the_answer_is_right);
    tcase_add_loop_test(t, each_read_failed_once_fails_one_load_or_one_batch_by_name, 0,
                        ARRAY_LEN(errnums));
    tcase_add_test(t, reads_that_give_a_little_at_a_time_change_nothing);
    tcase_add_test(t, a_file_cut_under_an_answer_fails_batches_until_it_is_whole_again);
    return t;
}
