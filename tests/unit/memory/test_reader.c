/* Many reads at once: the right bytes whatever the engine, every fault one read's own. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/alloc.h"
#include "daemon/memory/reader.h"
#include "tests/support/faulty.h"

TCase *tcase_memory_reader(void);

#define FILE_BYTES ((size_t)9 * 1024 * 1024 + 1234)
#define N_READS    40

static int fd; /* of a file that has no name any more */
static char *slots;
static size_t slot_bytes;
static struct read reads[N_READS];

static unsigned char byte_at(uint64_t offset)
{
    return (unsigned char)((offset * 2654435761u) >> 13);
}

/* Ranges of all sizes, at block starts and between, the last one up to the end of the file. */
static void place_reads(void)
{
    static const size_t sizes[] = {1, 4096, 700000, 5000, 3000000, 65536, 31, 1290000};

    slot_bytes = reader_slot_bytes_any(3000000);
    slots = alloc_pages(N_READS * slot_bytes, 0);
    ck_assert_ptr_nonnull(slots);
    memset(reads, 0, sizeof reads);
    for (size_t i = 0; i < N_READS; i++) {
        size_t n = sizes[i % ARRAY_LEN(sizes)];
        uint64_t at = i % 5 == 0 ? i * 4096 : (i * 977 * 131) % (FILE_BYTES - n);

        if (i == N_READS - 1)
            at = FILE_BYTES - n;
        reads[i] = (struct read){.offset = at,
                                 .bytes = n,
                                 .buffer = slots + i * slot_bytes,
                                 .capacity = slot_bytes,
                                 .name = "blk.3.ffn_up_exps.weight[7]",
                                 .user = &reads[i]};
    }
}

static void set_up(void)
{
    char path[64];
    unsigned char *bytes = xmalloc(FILE_BYTES);

    for (size_t i = 0; i < FILE_BYTES; i++)
        bytes[i] = byte_at(i);
    snprintf(path, sizeof path, "/tmp/rnbd-reader-%d", (int)getpid());
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    unlink(path);
    ck_assert_int_eq(write(fd, bytes, FILE_BYTES), FILE_BYTES);
    ck_assert_int_eq(fsync(fd), 0);
    free(bytes);
    place_reads();
}

static void tear_down(void)
{
    free_pages(slots, N_READS * slot_bytes);
    close(fd);
}

static struct reader *make(const struct reader_options *o)
{
    struct reader *r = NULL;
    struct err err = {0};

    ck_assert_msg(reader_create(&fd, 1, o, &r, &err) == 0, "%s", err.text);
    return r;
}

static void submit(struct reader *r, unsigned from, unsigned n)
{
    struct read *list[N_READS];

    for (unsigned i = 0; i < n; i++)
        list[i] = &reads[from + i];
    reader_submit(r, list, n);
}

static bool has_its_bytes(const struct read *rd)
{
    const unsigned char *p = reader_data(rd);

    for (size_t i = 0; i < rd->bytes; i++)
        if (p[i] != byte_at(rd->offset + i))
            return false;
    return true;
}

/* Waits for all; returns how many failed. */
static unsigned wait_all(struct reader *r)
{
    struct read *done[7];
    unsigned failed = 0, n;

    while ((n = reader_wait(r, 1, done, ARRAY_LEN(done))) > 0)
        for (unsigned i = 0; i < n; i++) {
            ck_assert_ptr_eq(done[i]->user, done[i]);
            if (done[i]->result < 0)
                failed++;
            else
                ck_assert_msg(has_its_bytes(done[i]), "read %d", (int)(done[i] - reads));
        }
    ck_assert_uint_eq(reader_pending(r), 0);
    return failed;
}

/* io_uring where this machine has it, and what stands in for it; direct and buffered. */
static const struct {
    enum reader_engine engine;
    bool buffered;
    unsigned window;
    size_t segment;
} ways[] = {
    {READER_AUTO, false, 0, 0},      {READER_AUTO, true, 0, 0},  {READER_POOL, false, 0, 0},
    {READER_POOL, true, 3, 0},       {READER_AUTO, false, 1, 0}, {READER_AUTO, false, 64, 65536},
    {READER_POOL, false, 64, 65536},
};

static struct reader *make_way(int i)
{
    struct reader_drive d = {
        .window = ways[i].window, .segment_bytes = ways[i].segment, .buffered = ways[i].buffered};

    return make(&(struct reader_options){.engine = ways[i].engine, .drives = &d});
}

START_TEST(every_range_arrives_whole_by_every_way)
{
    struct reader *r = make_way(_i);
    struct reader_stats s;

    submit(r, 0, N_READS);
    ck_assert_uint_eq(reader_pending(r), N_READS);
    ck_assert_uint_eq(wait_all(r), 0);
    reader_stats(r, &s);
    ck_assert_uint_eq(s.reads, N_READS);
    ck_assert_uint_eq(s.failed_reads, 0);
    ck_assert_uint_ge(s.read_bytes, s.wanted_bytes);
    /* over-read: at most two blocks for each read */
    ck_assert_uint_le(s.read_bytes, s.wanted_bytes + N_READS * 2 * READER_ALIGN);
    reader_destroy(r);
}
END_TEST

START_TEST(reads_begin_in_the_order_they_were_given)
{
    struct reader_drive d = {.window = 1, .segment_bytes = 512 << 10};
    struct reader *r = make(&(struct reader_options){.engine = READER_POOL, .drives = &d});
    struct read *done[1];

    /* of more than a window, so that one is in flight at a time */
    for (unsigned i = 0; i < 6; i++)
        reads[i].bytes = 600000, reads[i].offset = (5 - i) * 700000;
    submit(r, 0, 6);
    for (unsigned i = 0; i < 6; i++) {
        ck_assert_uint_eq(reader_wait(r, 1, done, 1), 1);
        ck_assert_ptr_eq(done[0], &reads[i]);
    }
    reader_destroy(r);
}
END_TEST

START_TEST(what_is_demanded_goes_before_what_is_guessed)
{
    struct reader_drive d = {.window = 1, .segment_bytes = 512 << 10};
    struct reader *r = make(&(struct reader_options){.engine = READER_POOL, .drives = &d});
    struct read *done[1];

    for (unsigned i = 0; i < 6; i++) {
        reads[i].bytes = 600000, reads[i].offset = i * 700000;
        reads[i].class = i < 3 ? READ_AHEAD : READ_DEMANDED;
    }
    submit(r, 0, 6); /* the first guess begins only when no one waits for anything */
    for (unsigned i = 0; i < 6; i++) {
        ck_assert_uint_eq(reader_wait(r, 1, done, 1), 1);
        ck_assert_ptr_eq(done[0], &reads[(i + 3) % 6]);
    }
    reader_destroy(r);
}
END_TEST

START_TEST(a_guess_that_has_not_begun_can_be_taken_back)
{
    struct reader_drive d = {.window = 1, .segment_bytes = 512 << 10};
    struct reader *r = make(&(struct reader_options){.engine = READER_POOL, .drives = &d});
    struct read *done[4];
    unsigned n = 0;

    for (unsigned i = 0; i < 4; i++) {
        reads[i].bytes = 600000, reads[i].offset = i * 700000;
        reads[i].class = i ? READ_AHEAD : READ_DEMANDED;
    }
    submit(r, 0, 4);
    reader_cancel_ahead(r);
    while (n < 4) {
        unsigned got = reader_wait(r, 1, done, 4);

        ck_assert_uint_gt(got, 0);
        n += got;
    }
    ck_assert_int_eq(reads[0].result, 0);
    for (unsigned i = 1; i < 4; i++)
        ck_assert_int_eq(reads[i].result, -ERR_CANCELLED);
    reader_destroy(r);
}
END_TEST

START_TEST(waiting_for_none_never_blocks_and_an_idle_reader_says_so)
{
    struct reader *r = make(NULL);
    struct read *done[N_READS];
    unsigned n = 0;

    ck_assert_uint_eq(reader_wait(r, 0, done, N_READS), 0);
    ck_assert_uint_eq(reader_wait(r, 1, done, N_READS), 0);
    submit(r, 0, 4);
    while (n < 4)
        n += reader_wait(r, 0, done, N_READS);
    ck_assert_uint_eq(reader_wait(r, 1, done, N_READS), 0);
    reader_destroy(r);
}
END_TEST

START_TEST(registered_buffers_change_nothing_and_can_be_taken_back)
{
    struct reader *r = make(NULL);
    bool got = reader_register(r, slots, N_READS * slot_bytes);
    struct reader_stats s;

    reader_stats(r, &s);
    ck_assert_uint_eq(s.registered_bytes, got ? N_READS * slot_bytes : 0);
    submit(r, 0, N_READS);
    ck_assert_uint_eq(wait_all(r), 0);
    reader_unregister(r, slots);
    reader_stats(r, &s);
    ck_assert_uint_eq(s.registered_bytes, 0);
    memset(slots, 0, N_READS * slot_bytes);
    submit(r, 0, N_READS);
    ck_assert_uint_eq(wait_all(r), 0);
    reader_destroy(r);
}
END_TEST

/* What engines do on a bad day: none of it is an error. */
static const struct faulty quirks[] = {
    {.fail_at = -1, .most_bytes = 1000},
    {.fail_at = -1, .most_bytes = 4096 * 3},
    {.fail_at = -1, .einval_direct = 1},
    {.fail_at = -1, .eintr_every = 3},
    {.fail_at = -1, .most_bytes = 100001, .einval_direct = 1, .eintr_every = 2},
};

START_TEST(short_and_interrupted_reads_and_no_direct_io_change_nothing)
{
    struct faulty f = quirks[_i];
    struct reader_faults e = {.pread = faulty_pread, .arg = &f};
    struct reader *r = make(&(struct reader_options){.faults = &e});

    submit(r, 0, N_READS);
    ck_assert_uint_eq(wait_all(r), 0);
    reader_destroy(r);
}
END_TEST

START_TEST(a_read_that_fails_names_the_tensor_and_spares_the_others)
{
    for (long n = 0; n < 30; n++) {
        struct faulty f = {.fail_at = n, .errnum = n % 2 ? EIO : 0};
        struct reader_faults e = {.pread = faulty_pread, .arg = &f};
        struct reader_drive d = {.segment_bytes = 1 << 20};
        struct reader *r = make(&(struct reader_options){.faults = &e, .drives = &d});
        struct err err = {0};
        unsigned failed;

        submit(r, 0, N_READS);
        failed = wait_all(r);
        ck_assert_uint_eq(failed, 1);
        for (unsigned i = 0; i < N_READS; i++)
            if (reads[i].result < 0) {
                ck_assert_int_eq(read_check(&reads[i], &err), -ERR_IO);
                ck_assert_ptr_nonnull(strstr(err.text, "blk.3.ffn_up_exps.weight[7]"));
                ck_assert_str_eq(err.param, "blk.3.ffn_up_exps.weight[7]");
            } else {
                ck_assert_int_eq(read_check(&reads[i], &err), 0);
            }
        submit(r, 0, N_READS); /* and the reader goes on */
        ck_assert_uint_eq(wait_all(r), 0);
        reader_destroy(r);
    }
}
END_TEST

START_TEST(a_file_that_was_cut_is_an_error_of_what_lay_behind_the_cut)
{
    struct reader *r = make_way(_i);
    struct err err = {0};
    uint64_t cut = 5000000;

    ck_assert_int_eq(ftruncate(fd, (off_t)cut), 0);
    submit(r, 0, N_READS);
    wait_all(r);
    for (unsigned i = 0; i < N_READS; i++) {
        bool whole = reads[i].offset + reads[i].bytes <= cut;

        ck_assert_int_eq(reads[i].result, whole ? 0 : -ERR_IO);
        if (!whole) {
            ck_assert_int_eq(read_check(&reads[i], &err), -ERR_IO);
            ck_assert_ptr_nonnull(strstr(err.text, "was cut"));
        }
    }
    reader_destroy(r);
}
END_TEST

/* Reads one operation for each post: what is begun meanwhile is told by the order of the rest. */
static ssize_t gated_pread(void *arg, int from, void *buf, size_t n, off_t offset)
{
    while (sem_wait(arg) < 0)
        continue;
    return pread(from, buf, n, offset);
}

static void open_gate(sem_t *gate, unsigned n)
{
    while (n--)
        sem_post(gate);
}

/* The number of the next read that lands. */
static unsigned next(struct reader *r)
{
    struct read *done[1];

    ck_assert_uint_eq(reader_wait(r, 1, done, 1), 1);
    ck_assert(has_its_bytes(done[0]));
    return (unsigned)(done[0] - reads);
}

static struct reader *make_gated(sem_t *gate)
{
    static struct reader_faults e;
    struct reader_drive d = {.window = 1, .segment_bytes = 128 << 10};

    ck_assert_int_eq(sem_init(gate, 0, 0), 0);
    e = (struct reader_faults){.pread = gated_pread, .arg = gate};
    for (unsigned i = 0; i < 12; i++) /* the last ones are rows */
        reads[i].bytes = i < 10 ? 100000 : 5000, reads[i].offset = (uint64_t)i * 25 * 4096;
    return make(&(struct reader_options){.faults = &e, .drives = &d});
}

/* What is left lands in this order. */
static void end_gated(struct reader *r, sem_t *gate, const unsigned *order, unsigned n)
{
    open_gate(gate, n);
    for (unsigned i = 0; i < n; i++)
        ck_assert_uint_eq(next(r), order[i]);
    reader_destroy(r);
    sem_destroy(gate);
}

START_TEST(a_row_waits_for_no_window)
{
    static const unsigned order[] = {0, 1, 10, 2, 3};
    sem_t gate;
    struct reader *r = make_gated(&gate);

    submit(r, 0, 4); /* the second overlaps the window */
    submit(r, 10, 1);
    end_gated(r, &gate, order, ARRAY_LEN(order));
}
END_TEST

START_TEST(a_burst_that_a_computation_gives_time_for_is_joined_only_when_it_is_nearly_over)
{
    static const unsigned order[] = {1, 2, 3, 10, 4, 5, 6, 7};
    sem_t gate;
    struct reader *r = make_gated(&gate);

    reader_set_ahead(r, 300000);
    submit(r, 0, 4); /* 400000: the last overlaps the window */
    submit(r, 4, 4);
    open_gate(&gate, 1);
    ck_assert_uint_eq(next(r), 0); /* three in flight leave room for one */
    submit(r, 10, 1);              /* would come behind it */
    end_gated(r, &gate, order, ARRAY_LEN(order));
}
END_TEST

START_TEST(a_computation_gives_time_for_a_burst_of_half_the_places_at_most)
{
    struct reader_drive d = {.window = 4, .segment_bytes = 1 << 20};
    struct reader_options o = {.drives = &d};
    struct reader *r = make(&o);
    static const struct {
        size_t bytes;
        size_t window;
    } steps[] = {{0, 4 << 20},
                 {2 << 20, 4 << 20},
                 {9 << 20, 12 << 20}, /* with what is nearly over when it begins */
                 {SIZE_MAX, ((size_t)READER_WINDOW_MAX / 2 << 20) * 4 / 3},
                 {0, 4 << 20}};

    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        struct reader_stats s;

        reader_set_ahead(r, steps[i].bytes);
        reader_stats(r, &s);
        ck_assert_uint_eq(s.window_bytes, steps[i].window);
        submit(r, 0, N_READS);
        ck_assert_uint_eq(wait_all(r), 0);
    }
    reader_destroy(r);
}
END_TEST

START_TEST(cancelling_leaves_no_read_with_the_reader)
{
    struct reader *r = make_way(_i);
    struct read *done[N_READS];
    unsigned cancelled = 0;

    submit(r, 0, N_READS);
    reader_cancel(r);
    ck_assert_uint_eq(reader_pending(r), 0);
    ck_assert_uint_eq(reader_wait(r, 1, done, N_READS), 0);
    for (unsigned i = 0; i < N_READS; i++) {
        ck_assert(reads[i].result == 0 || reads[i].result == -ERR_CANCELLED);
        cancelled += reads[i].result < 0;
        if (reads[i].result == 0)
            ck_assert(has_its_bytes(&reads[i]));
    }
    /* the first operations of a window of 64 may be all; smaller ones leave a rest */
    if (ways[_i].window != 64)
        ck_assert_uint_gt(cancelled, 0);
    submit(r, 0, N_READS);
    ck_assert_uint_eq(wait_all(r), 0);
    submit(r, 0, N_READS);
    reader_destroy(r); /* with reads in flight */
}
END_TEST

START_TEST(a_buffer_that_is_too_small_is_refused_and_nothing_is_written)
{
    struct reader *r = make(NULL);
    struct read *done[2];

    reads[0].bytes = 5000, reads[0].offset = 4090, reads[0].capacity = 8192;
    ck_assert_uint_eq(reader_slot_bytes(4090, 5000), 12288);
    reads[1].part = 3;
    memset(slots, 0x5a, slot_bytes);
    submit(r, 0, 2);
    ck_assert_uint_eq(reader_wait(r, 2, done, 2), 2);
    ck_assert_int_eq(reads[0].result, -ERR_IO);
    ck_assert_int_eq(reads[1].result, -ERR_IO);
    for (size_t i = 0; i < slot_bytes; i++)
        ck_assert_int_eq(slots[i], 0x5a);
    reader_destroy(r);
}
END_TEST

TCase *tcase_memory_reader(void)
{
    TCase *tc = tcase_create("reader");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, every_range_arrives_whole_by_every_way, 0, ARRAY_LEN(ways));
    tcase_add_test(tc, reads_begin_in_the_order_they_were_given);
    tcase_add_test(tc, what_is_demanded_goes_before_what_is_guessed);
    tcase_add_test(tc, a_row_waits_for_no_window);
    tcase_add_test(tc,
                   a_burst_that_a_computation_gives_time_for_is_joined_only_when_it_is_nearly_over);
    tcase_add_test(tc, a_guess_that_has_not_begun_can_be_taken_back);
    tcase_add_test(tc, waiting_for_none_never_blocks_and_an_idle_reader_says_so);
    tcase_add_test(tc, registered_buffers_change_nothing_and_can_be_taken_back);
    tcase_add_loop_test(tc, short_and_interrupted_reads_and_no_direct_io_change_nothing, 0,
                        ARRAY_LEN(quirks));
    tcase_add_test(tc, a_read_that_fails_names_the_tensor_and_spares_the_others);
    tcase_add_loop_test(tc, a_file_that_was_cut_is_an_error_of_what_lay_behind_the_cut, 0,
                        ARRAY_LEN(ways));
    tcase_add_test(tc, a_computation_gives_time_for_a_burst_of_half_the_places_at_most);
    tcase_add_loop_test(tc, cancelling_leaves_no_read_with_the_reader, 0, ARRAY_LEN(ways));
    tcase_add_test(tc, a_buffer_that_is_too_small_is_refused_and_nothing_is_written);
    return tc;
}
