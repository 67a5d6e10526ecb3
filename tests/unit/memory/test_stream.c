/* Ranges to their homes in order: every byte, every fault one stream's, an idle reader after each. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/alloc.h"
#include "daemon/memory/stream.h"
#include "tests/support/faulty.h"

TCase *tcase_memory_stream(void);

#define FILE_BYTES (3 * STREAM_BLOCK + 4321)
#define N_RANGES   9

static int
    fds[2]; /* of files that have no name any more; the second holds the first's bytes inverted */
static unsigned char *home;
static struct stream_range ranges[N_RANGES];
static size_t wanted_bytes;

static unsigned char byte_at(unsigned part, uint64_t offset)
{
    unsigned char b = (unsigned char)((offset * 2654435761u) >> 13);

    return part ? (unsigned char)~b : b;
}

static void make_file(unsigned part)
{
    char path[64];
    unsigned char *bytes = xmalloc(FILE_BYTES);

    for (size_t i = 0; i < FILE_BYTES; i++)
        bytes[i] = byte_at(part, i);
    snprintf(path, sizeof path, "/tmp/rnbd-stream-%d-%u", (int)getpid(), part);
    fds[part] = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_int_ge(fds[part], 0);
    unlink(path);
    ck_assert_int_eq(write(fds[part], bytes, FILE_BYTES), FILE_BYTES);
    ck_assert_int_eq(fsync(fds[part]), 0);
    free(bytes);
}

/* Neighbours, gaps small and large, an empty one, one wanted twice, longer than a block, two parts. */
static void set_up(void)
{
    static const struct {
        unsigned part;
        uint64_t offset, bytes;
        const char *name;
    } places[N_RANGES] = {
        {0, 32, 100, "tiny"},
        {0, 132, 0, "empty"},
        {0, 160, 70000, "shared"},
        {0, 160, 70000, "shared again"},
        {0, 200001, STREAM_BLOCK + 500000, "long"},
        {0, STREAM_BLOCK + 700001, 4096, "next to it"},
        {0, 2 * STREAM_BLOCK, STREAM_BLOCK, "whole block"},
        {0, FILE_BYTES - 10, 10, "last"},
        {1, 4096, 2 * STREAM_BLOCK, "of another part"},
    };
    size_t at = 0;

    make_file(0);
    make_file(1);
    for (size_t i = 0; i < N_RANGES; i++)
        at += places[i].bytes + 64;
    wanted_bytes = at - (size_t)N_RANGES * 64;
    home = xcalloc(1, at);
    at = 0;
    for (size_t i = 0; i < N_RANGES; i++) {
        ranges[i] = (struct stream_range){.part = places[i].part,
                                          .offset = places[i].offset,
                                          .bytes = places[i].bytes,
                                          .dst = home + at,
                                          .name = places[i].name};
        at += places[i].bytes + 64;
    }
}

static void tear_down(void)
{
    free(home);
    close(fds[0]);
    close(fds[1]);
}

static struct reader *make(const struct reader_options *o)
{
    struct reader *r = NULL;
    struct err err = {0};

    ck_assert_msg(reader_create(fds, 2, o, &r, &err) == 0, "%s", err.text);
    return r;
}

static int count(void *arg, size_t bytes, struct err *err)
{
    size_t *sum = arg;

    (void)err;
    *sum += bytes;
    return 0;
}

/* What lies there, and zero behind it; one check for all bytes: each costs a message to the runner. */
static bool is_home(const struct stream_range *x)
{
    const unsigned char *p = x->dst;

    for (uint64_t k = 0; k < x->bytes + 64; k++)
        if (p[k] != (k < x->bytes ? byte_at(x->part, x->offset + k) : 0))
            return false;
    return true;
}

static void check_homes(void)
{
    for (size_t i = 0; i < N_RANGES; i++)
        ck_assert_msg(is_home(&ranges[i]), "%s", ranges[i].name);
}

START_TEST(every_range_comes_home_whatever_the_engine_and_the_number_of_blocks)
{
    static const struct reader_faults buffered = {.no_direct = true};
    static const struct reader_options how[] = {
        {.engine = READER_AUTO}, {.engine = READER_POOL}, {.faults = &buffered}};
    struct reader *r = make(&how[_i % 3]);
    size_t staging = (_i < 3 ? STREAM_BLOCKS_LEAST : STREAM_BLOCKS_MAX) * STREAM_BLOCK;
    size_t sum = 0;
    struct err err = {0};

    ck_assert_msg(stream_read(r, staging, ranges, N_RANGES, count, &sum, &err) == 0, "%s",
                  err.text);
    ck_assert_uint_eq(sum, wanted_bytes);
    check_homes();
    ck_assert_uint_eq(reader_pending(r), 0);
    reader_destroy(r);
}
END_TEST

START_TEST(short_and_interrupted_reads_change_nothing)
{
    static const struct faulty how[] = {
        {.fail_at = -1, .most_bytes = 77777},
        {.fail_at = -1, .einval_direct = 1},
        {.fail_at = -1, .eintr_every = 2, .most_bytes = 50000},
    };
    struct faulty f = how[_i];
    struct reader_faults faults = {.pread = faulty_pread, .arg = &f};
    struct reader *r = make(&(struct reader_options){.faults = &faults});

    ck_assert_int_eq(stream_read(r, stream_staging_bytes(0), ranges, N_RANGES, NULL, NULL, NULL),
                     0);
    check_homes();
    reader_destroy(r);
}
END_TEST

START_TEST(ranges_that_share_a_block_are_read_once)
{
    struct reader *r = make(NULL);
    struct reader_stats s;

    ck_assert_int_eq(stream_read(r, stream_staging_bytes(0), ranges, 2, NULL, NULL, NULL), 0);
    reader_stats(r, &s);
    ck_assert_uint_eq(s.reads, 1);
    ck_assert_int_eq(stream_read(r, stream_staging_bytes(0), ranges, N_RANGES, NULL, NULL, NULL),
                     0);
    reader_stats(r, &s);
    ck_assert_uint_eq(s.failed_reads, 0);
    ck_assert_uint_le(s.reads, 12);
    reader_destroy(r);
}
END_TEST

START_TEST(a_read_that_fails_ends_the_stream_and_the_reader_serves_the_next)
{
    for (long i = 0; i < 6; i++) {
        struct faulty f = {.fail_at = i, .errnum = EIO};
        struct reader_faults faults = {.pread = faulty_pread, .arg = &f};
        struct reader *r = make(&(struct reader_options){.faults = &faults});
        struct err err = {0};

        ck_assert_int_eq(
            stream_read(r, stream_staging_bytes(0), ranges, N_RANGES, NULL, NULL, &err), -ERR_IO);
        ck_assert_ptr_nonnull(strstr(err.text, err.param));
        ck_assert_uint_eq(reader_pending(r), 0);
        ck_assert_int_eq(
            stream_read(r, stream_staging_bytes(0), ranges, N_RANGES, NULL, NULL, &err), 0);
        check_homes();
        reader_destroy(r);
    }
}
END_TEST

/* Where the file ends now, and who is not all there. */
START_TEST(a_file_that_was_cut_names_the_byte_and_the_tensor_that_misses_it)
{
    static const struct {
        uint64_t bytes;
        const char *name;
    } cuts[] = {{50, "tiny"}, {135, "shared"}, {2 * STREAM_BLOCK + 5000, "whole block"}};
    static const struct reader_faults buffered = {.no_direct = true};
    struct reader *r = make(_i < 3 ? NULL : &(struct reader_options){.faults = &buffered});
    struct err err = {0};
    char place[64];

    ck_assert_int_eq(ftruncate(fds[0], (off_t)cuts[_i % 3].bytes), 0);
    ck_assert_int_eq(
        stream_read(r, stream_staging_bytes(UINT64_MAX), ranges, N_RANGES, NULL, NULL, &err),
        -ERR_IO);
    ck_assert_str_eq(err.param, cuts[_i % 3].name);
    snprintf(place, sizeof place, "at byte %llu,", (unsigned long long)cuts[_i % 3].bytes);
    ck_assert_msg(strstr(err.text, place) != NULL, "%s", err.text);
    ck_assert_uint_eq(reader_pending(r), 0);
    reader_destroy(r);
}
END_TEST

static int enough(void *arg, size_t bytes, struct err *err)
{
    (void)arg, (void)bytes;
    return err_set(err, ERR_CANCELLED, "enough");
}

START_TEST(who_is_told_of_progress_can_end_it)
{
    struct reader *r = make(NULL);
    struct err err = {0};

    ck_assert_int_eq(stream_read(r, stream_staging_bytes(0), ranges, N_RANGES, enough, NULL, &err),
                     -ERR_CANCELLED);
    ck_assert_str_eq(err.text, "enough");
    ck_assert_uint_eq(reader_pending(r), 0);
    reader_destroy(r);
}
END_TEST

START_TEST(staging_is_an_eighth_within_two_bounds)
{
    ck_assert_uint_eq(stream_staging_bytes(0), 2 * STREAM_BLOCK);
    ck_assert_uint_eq(stream_staging_bytes(40 * STREAM_BLOCK), 5 * STREAM_BLOCK);
    ck_assert_uint_eq(stream_staging_bytes(UINT64_MAX), 8 * STREAM_BLOCK);
}
END_TEST

TCase *tcase_memory_stream(void)
{
    TCase *tc = tcase_create("stream");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, every_range_comes_home_whatever_the_engine_and_the_number_of_blocks, 0,
                        6);
    tcase_add_loop_test(tc, short_and_interrupted_reads_change_nothing, 0, 3);
    tcase_add_test(tc, ranges_that_share_a_block_are_read_once);
    tcase_add_test(tc, a_read_that_fails_ends_the_stream_and_the_reader_serves_the_next);
    tcase_add_loop_test(tc, a_file_that_was_cut_names_the_byte_and_the_tensor_that_misses_it, 0, 6);
    tcase_add_test(tc, who_is_told_of_progress_can_end_it);
    tcase_add_test(tc, staging_is_an_eighth_within_two_bounds);
    return tc;
}
