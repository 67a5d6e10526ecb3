/* Loading all extents: the right bytes, exact charges, every fault survived. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/alloc.h"
#include "daemon/memory/residency.h"
#include "tests/support/cpu_backend.h"
#include "tests/support/faulty.h"
#include "tests/support/gguf_writer.h"

TCase *tcase_memory_residency(void);

#define N_TENSORS 9

static struct cpu_backend cpu;
static struct ledger *ledger;
static struct gguf *file;
static int file_fd; /* of a file that has no name any more */

/* Sizes on both sides of a block of the stream, and tiny ones between. */
static const uint64_t elems[N_TENSORS] = {3, 300000, 1, 64, 262144, 17, 524288, 5, 100};

static float value_of(size_t tensor, size_t i)
{
    return (float)(tensor * 1000003 + i);
}

static void set_up(void)
{
    struct gguf_writer w = {0};
    struct err err = {0};
    char path[64], *link;

    gguf_writer_string(&w, "general.architecture", "none");
    for (size_t t = 0; t < N_TENSORS; t++) {
        float *x = xreallocarray(NULL, elems[t], sizeof *x);
        char name[16];

        for (size_t i = 0; i < elems[t]; i++)
            x[i] = value_of(t, i);
        snprintf(name, sizeof name, "t%zu", t);
        gguf_writer_tensor(&w, name, 0, 1, &elems[t], x);
        free(x);
    }
    snprintf(path, sizeof path, "/tmp/rnbd-residency-%d.gguf", (int)getpid());
    unlink(path);
    gguf_writer_save(&w, path);
    gguf_writer_clear(&w);
    file_fd = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(file_fd, 0);
    unlink(path);
    link = gguf_writer_fd_path(file_fd);
    ck_assert_msg(gguf_open(link, &file, &err) == 0, "%s", err.text);
    free(link);
    cpu = cpu_backend_open(1, NULL);
    ledger = ledger_create();
}

static void tear_down(void)
{
    gguf_close(file);
    close(file_fd);
    cpu_backend_close(&cpu);
    ck_assert_uint_eq(ledger_used(ledger, POOL_RAM), 0);
    ledger_destroy(ledger);
}

/* All tensors but the fourth, last first: ids are not in the file's order. */
static struct residency *make(const struct reader_faults *engine)
{
    struct residency *r = residency_create(file, ledger, cpu.ops, cpu.be, "test");

    if (engine)
        residency_set_engine(r, engine);
    for (size_t k = N_TENSORS; k-- > 0;) {
        const struct gguf_tensor *t = gguf_tensor_at(file, k);
        struct extent e = {.part = t->part, .offset = t->offset, .bytes = t->bytes, .layer = -1};

        if (k == 3)
            continue;
        snprintf(e.name, sizeof e.name, "%.*s", (int)t->name.len, t->name.p);
        residency_add(r, &e);
    }
    return r;
}

static void check_bytes(struct residency *r)
{
    extent_id id = 0;

    for (size_t k = N_TENSORS; k-- > 0;) {
        const void *data;

        if (k == 3)
            continue;
        ck_assert_int_eq(residency_pin(r, id, &data, NULL), 0);
        ck_assert_uint_eq((uintptr_t)data % 64, 0);
        for (size_t i = 0; i < elems[k]; i++)
            ck_assert(((const float *)data)[i] == value_of(k, i));
        residency_unpin(r, id++);
    }
}

static size_t told_done, told_total;

static void note_progress(void *arg, size_t done, size_t total)
{
    (void)arg;
    ck_assert_uint_ge(done, told_done);
    told_done = done;
    told_total = total;
}

START_TEST(all_extents_are_read_and_charged_at_their_true_size)
{
    struct reader_faults buffered = {.no_direct = true};
    struct residency *r = make(_i ? &buffered : NULL);
    size_t weights, staging;
    struct residency_stats s;
    struct ledger_report report;
    struct err err = {0};

    residency_need(r, &weights, &staging);
    told_done = 0;
    ck_assert_msg(residency_load(r, note_progress, NULL, NULL, &err) == 0, "%s", err.text);
    check_bytes(r);
    ledger_report(ledger, POOL_RAM, &report);
    ck_assert_uint_eq(report.used, weights);
    ck_assert_uint_eq(report.accounts[ACCOUNT_WEIGHTS], weights);
    ck_assert_uint_eq(report.peak, weights + staging);
    residency_stats(r, &s);
    ck_assert_uint_eq(s.resident_extents, N_TENSORS - 1);
    ck_assert_uint_eq(s.resident_bytes, told_total);
    ck_assert_uint_eq(told_done, told_total);
    /* A block is read once: what is read is the file's data and less than a page a gap. */
    ck_assert_uint_le(s.bytes_read, s.bytes + 16 * READER_ALIGN);
    residency_destroy(r);
}
END_TEST

START_TEST(short_and_interrupted_reads_and_a_file_system_without_direct_io_change_nothing)
{
    static const struct faulty how[] = {
        {.fail_at = -1, .most_bytes = 1000},
        {.fail_at = -1, .most_bytes = 4096},
        {.fail_at = -1, .most_bytes = 77777},
        {.fail_at = -1, .einval_direct = 1},
        {.fail_at = -1, .eintr_every = 2, .most_bytes = 50000},
    };
    struct faulty f = how[_i];
    struct reader_faults engine = {.pread = faulty_pread, .arg = &f};
    struct residency *r = make(&engine);
    struct err err = {0};

    ck_assert_msg(residency_load(r, NULL, NULL, NULL, &err) == 0, "%s", err.text);
    ck_assert_int_gt((int)f.n_reads, 4);
    check_bytes(r);
    residency_destroy(r);
}
END_TEST

START_TEST(a_read_that_fails_names_the_tensor_and_leaves_nothing_behind)
{
    struct faulty clean = {.fail_at = -1};
    struct reader_faults engine = {.pread = faulty_pread, .arg = &clean};
    struct residency *r = make(&engine);
    struct err err = {0};
    long n_reads;

    ck_assert_int_eq(residency_load(r, NULL, NULL, NULL, &err), 0);
    n_reads = clean.n_reads;
    residency_destroy(r);
    for (long i = 0; i < n_reads; i++) {
        struct faulty f = {.fail_at = i, .errnum = EIO};

        engine.arg = &f;
        r = make(&engine);
        err_clear(&err);
        ck_assert_int_eq(residency_load(r, NULL, NULL, NULL, &err), -ERR_IO);
        ck_assert_int_eq(err.param[0], 't');
        ck_assert_ptr_nonnull(strstr(err.text, err.param));
        ck_assert_uint_eq(ledger_used(ledger, POOL_RAM), 0);
        residency_destroy(r);
    }
}
END_TEST

START_TEST(a_file_that_was_cut_after_it_was_opened_is_an_error_of_the_load)
{
    const struct gguf_tensor *last = gguf_tensor_at(file, N_TENSORS - 3);
    struct reader_faults buffered = {.no_direct = true};
    struct residency *r = make(_i ? &buffered : NULL);
    struct err err = {0};

    ck_assert_int_eq(ftruncate(file_fd, (off_t)(last->offset + 4096 + 100)), 0);
    ck_assert_int_eq(residency_load(r, NULL, NULL, NULL, &err), -ERR_IO);
    ck_assert_str_eq(err.param, "t6");
    ck_assert_ptr_nonnull(strstr(err.text, "cut"));
    residency_destroy(r);
}
END_TEST

START_TEST(a_refused_charge_leaves_nothing_behind_and_a_later_load_works)
{
    struct residency *r = make(NULL);
    struct err err = {0};

    for (long n = 0; n < 2; n++) {
        ledger_refuse_after(ledger, n);
        ck_assert_int_eq(residency_load(r, NULL, NULL, NULL, &err), -ERR_NOMEM);
        ck_assert_uint_eq(ledger_used(ledger, POOL_RAM), 0);
    }
    ledger_refuse_after(ledger, -1);
    ck_assert_int_eq(residency_load(r, NULL, NULL, NULL, &err), 0);
    check_bytes(r);
    residency_destroy(r);
}
END_TEST

static _Atomic bool cancelled;

static void cancel_soon(void *arg, size_t done, size_t total)
{
    (void)arg;
    (void)total;
    cancelled = done > 0;
}

START_TEST(a_cancelled_load_leaves_nothing_behind)
{
    struct residency *r = make(NULL);
    struct err err = {0};

    cancelled = false;
    ck_assert_int_eq(residency_load(r, cancel_soon, NULL, &cancelled, &err), -ERR_CANCELLED);
    ck_assert_uint_eq(ledger_used(ledger, POOL_RAM), 0);
    residency_destroy(r);
}
END_TEST

START_TEST(a_tensor_used_before_it_is_loaded_is_an_error)
{
    struct residency *r = make(NULL);
    struct err err = {0};
    const void *data;

    ck_assert_int_eq(residency_pin(r, 0, &data, &err), -ERR_INTERNAL);
    residency_destroy(r);
}
END_TEST

TCase *tcase_memory_residency(void)
{
    TCase *tc = tcase_create("residency");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, all_extents_are_read_and_charged_at_their_true_size, 0, 2);
    tcase_add_loop_test(
        tc, short_and_interrupted_reads_and_a_file_system_without_direct_io_change_nothing, 0, 5);
    tcase_add_test(tc, a_read_that_fails_names_the_tensor_and_leaves_nothing_behind);
    tcase_add_loop_test(tc, a_file_that_was_cut_after_it_was_opened_is_an_error_of_the_load, 0, 2);
    tcase_add_test(tc, a_refused_charge_leaves_nothing_behind_and_a_later_load_works);
    tcase_add_test(tc, a_cancelled_load_leaves_nothing_behind);
    tcase_add_test(tc, a_tensor_used_before_it_is_loaded_is_an_error);
    return tc;
}
