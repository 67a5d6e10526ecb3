/* A drive is measured once and then known. */
#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/alloc.h"
#include "common/file.h"
#include "daemon/memory/calibrate.h"
#include "tests/support/scratch.h"

TCase *tcase_memory_calibrate(void);

#define MIB ((size_t)1 << 20)

static const char *dir; /* holds the file, and state/ */
static char *state_dir;
static int fd;

static void set_up(void)
{
    char *path;

    dir = scratch_make();
    state_dir = file_join(dir, "state");
    path = file_join(dir, "model");
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, 80 * (off_t)MIB), 0);
    free(path);
}

static void tear_down(void)
{
    close(fd);
    ck_assert_int_eq(scratch_remove(), 0);
    free(state_dir);
}

static struct calibration calibrate(bool again)
{
    struct calibrate_options o = {.state_dir = state_dir, .again = again, .most_ms = 60};
    struct calibration c;
    struct err err = {0};

    ck_assert_msg(calibrate_drive(fd, &o, &c, &err) == 0, "%s", err.text);
    return c;
}

/* The one file of the state folder; NULL when there is none. */
static char *kept(void)
{
    DIR *d = opendir(state_dir);
    struct dirent *e;
    char *path = NULL;

    while (d && (e = readdir(d)))
        if (e->d_name[0] != '.') {
            ck_assert_ptr_null(path);
            path = file_join(state_dir, e->d_name);
        }
    if (d)
        closedir(d);
    return path;
}

START_TEST(a_drive_is_measured_once_and_then_known)
{
    struct calibration a = calibrate(false), b;
    struct reader_drive drive;
    char *path = kept();

    ck_assert(!a.from_file);
    ck_assert_double_gt(a.rate, 0);
    ck_assert_double_eq_tol(calibrate_rate(&a, (double)a.segment_bytes), a.rate, a.rate * 1e-9);
    ck_assert_uint_ge(a.window, calibrate_depths[2]); /* fewer leave the drive idle */
    ck_assert_uint_gt(strlen(a.why), 20);
    ck_assert_ptr_nonnull(path);
    b = calibrate(false);
    ck_assert(b.from_file);
    ck_assert_double_eq_tol(b.rate, a.rate, a.rate * 1e-9);
    ck_assert_double_ge(a.wait_s, 0);
    ck_assert_double_lt(a.wait_s, 10);
    ck_assert_double_eq_tol(b.wait_s, a.wait_s, 1e-9);
    ck_assert_uint_eq(b.window, a.window);
    ck_assert_uint_eq(b.segment_bytes, a.segment_bytes);
    ck_assert_int_eq(b.direct, a.direct);
    ck_assert_str_eq(b.why, a.why);
    ck_assert_mem_eq(b.rates, a.rates, sizeof a.rates);
    ck_assert(!calibrate(true).from_file);
    drive = calibrate_reader(&b);
    ck_assert_uint_eq(drive.window, b.window);
    ck_assert_int_eq(drive.buffered, !b.direct);
    free(path);
}
END_TEST

static const uint64_t ranges[] = {1, 2, 3, 8, 16, 618, 1000, 2236, 2237, 4474, 65536};

START_TEST(a_walk_reads_all_ranges_before_any_again_and_none_beside_the_last)
{
    uint64_t n = ranges[_i], before = 0;
    bool *seen = XNEW_ARRAY(bool, n);

    for (uint64_t turn = 7; turn < n + 7; turn++) {
        uint64_t at = calibrate_range(turn, n);

        ck_assert_uint_lt(at, n);
        ck_assert(!seen[at]);
        seen[at] = true;
        if (turn > 7 && n >= 8) {
            uint64_t apart = at > before ? at - before : before - at;

            ck_assert_uint_ge(MIN(apart, n - apart), n / 4);
        }
        before = at;
    }
    free(seen);
    ck_assert_uint_eq(calibrate_range(3, 0), 0);
}
END_TEST

START_TEST(reads_of_less_than_a_segment_get_what_the_table_has_for_them)
{
    struct calibration c = {.rate = 9e8, .window = 4, .segment_bytes = 2 * MIB};
    const double of_size[] = {5e8, 8e8, 1e9};

    for (int i = 0; i < CALIBRATE_SIZES; i++)
        for (int k = 0; k < CALIBRATE_DEPTHS; k++)
            c.rates[i][k] = of_size[i] * (calibrate_depths[k] < 4 ? 0.5 : 1);
    ck_assert_double_eq(calibrate_rate(&c, 2.0 * MIB), 9e8);
    ck_assert_double_eq(calibrate_rate(&c, 64.0 * MIB), 9e8);
    ck_assert_double_eq_tol(calibrate_rate(&c, 1.0 * MIB), 0.8 * 9e8, 1);
    ck_assert_double_eq_tol(calibrate_rate(&c, 0.5 * MIB), 0.65 * 9e8, 1); /* halfway, by octaves */
    ck_assert_double_eq_tol(calibrate_rate(&c, 4096), 0.5 * 9e8, 1);
    c.segment_bytes = 1 * MIB; /* longer ones are made of these */
    ck_assert_double_eq(calibrate_rate(&c, 2.0 * MIB), 9e8);
    c.rates[2][2] = 0;
    c.rates[1][2] = 4e8; /* noise: less for more */
    ck_assert_double_eq(calibrate_rate(&c, 0.25 * MIB), 9e8);
}
END_TEST

START_TEST(a_table_that_was_not_filled_leaves_the_rate)
{
    struct calibration c = {.rate = 7e8, .window = 4, .segment_bytes = 2 * MIB};

    ck_assert_double_eq(calibrate_rate(&c, 1000), 7e8);
    ck_assert_double_eq(calibrate_rate(&c, 2.0 * MIB), 7e8);
}
END_TEST

static const char *const damages[] = {
    "",
    "{",
    "[1, 2]",
    "{\"version\": 1}",
    "{\"version\": 5, \"at\": 1, \"direct\": true, \"window\": 100000, \"segment_bytes\": 1048576, "
    "\"rate\": "
    "1e9, "
    "\"cpu_s_per_gib\": 0, \"buffered_rate\": 0, \"buffered_cpu_s_per_gib\": 0, \"rates\": []}",
    "{\"version\": 5, \"at\": 1, \"direct\": true, \"window\": 6, \"segment_bytes\": 1048576, "
    "\"rate\": -1, "
    "\"cpu_s_per_gib\": 0, \"buffered_rate\": 0, \"buffered_cpu_s_per_gib\": 0, \"rates\": []}",
};

START_TEST(a_damaged_state_file_is_measured_anew)
{
    struct err err = {0};
    char *path;

    calibrate(false);
    path = kept();
    ck_assert_ptr_nonnull(path);
    ck_assert_int_eq(file_replace(path, damages[_i], strlen(damages[_i]), 0600, &err), 0);
    ck_assert(!calibrate(false).from_file);
    ck_assert(calibrate(false).from_file);
    free(path);
}
END_TEST

START_TEST(what_was_measured_long_ago_is_measured_anew_and_without_measuring_it_is_not_known)
{
    struct str text = {0};
    struct calibration c;
    char *path, *at;

    ck_assert(!calibrate_known(fd, state_dir, &c));
    calibrate(false);
    ck_assert(calibrate_known(fd, state_dir, &c));
    ck_assert_double_gt(c.rate, 0);
    ck_assert(!calibrate_known(fd, NULL, &c));
    path = kept();
    ck_assert_int_ge(file_read_all(path, 65536, &text, NULL), 0);
    at = strstr(str_text(&text), "\"at\":1");
    ck_assert_ptr_nonnull(at);
    at[5] = '0'; /* a billion seconds earlier */
    ck_assert_int_ge(file_replace(path, text.p, text.len, 0600, NULL), 0);
    ck_assert(!calibrate_known(fd, state_dir, &c));
    ck_assert(!calibrate(false).from_file);
    ck_assert(calibrate(false).from_file);
    str_clear(&text);
    free(path);
}
END_TEST

START_TEST(what_a_small_file_says_is_used_but_not_kept)
{
    struct calibration c;
    char *path;

    ck_assert_int_eq(ftruncate(fd, 3 * 4096 + 17), 0);
    c = calibrate(false);
    path = kept();
    ck_assert_uint_ge(c.window, 1);
    ck_assert_ptr_null(path);
}
END_TEST

static bool stop_at_zero(void *arg)
{
    int *left = arg;

    return (*left)-- == 0;
}

/* Everywhere: in the table, in the chosen window, in bursts. */
START_TEST(measuring_is_broken_off_between_any_two_cells_and_nothing_is_kept)
{
    struct calibrate_options o = {.state_dir = state_dir, .most_ms = 60, .stop = stop_at_zero};
    struct calibration c;
    struct err err = {0};
    int left, n = 0, r;

    do {
        left = n;
        o.stop_arg = &left;
        r = calibrate_drive(fd, &o, &c, &err);
        if (r < 0) {
            char *path = kept();

            ck_assert_int_eq(r, -ERR_CANCELLED);
            ck_assert_ptr_null(path);
            n += 1 + n / 2; /* some of them */
        }
    } while (r < 0);
    ck_assert_int_gt(n, 20);
}
END_TEST

START_TEST(a_state_folder_that_cannot_be_written_is_no_error)
{
    free(state_dir);
    state_dir = xstrdup("/proc/nowhere");
    ck_assert(!calibrate(false).from_file);
}
END_TEST

START_TEST(an_empty_file_and_no_file_are_errors)
{
    struct calibrate_options o = {.most_ms = 30};
    struct calibration c;
    struct err err = {0};

    ck_assert_int_eq(ftruncate(fd, 0), 0);
    ck_assert_int_eq(calibrate_drive(fd, &o, &c, &err), -ERR_IO);
    ck_assert_int_eq(calibrate_drive(-1, &o, &c, &err), -ERR_IO);
}
END_TEST

TCase *tcase_memory_calibrate(void)
{
    TCase *tc = tcase_create("calibrate");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, a_drive_is_measured_once_and_then_known);
    tcase_add_loop_test(tc, a_walk_reads_all_ranges_before_any_again_and_none_beside_the_last, 0,
                        ARRAY_LEN(ranges));
    tcase_add_test(tc, reads_of_less_than_a_segment_get_what_the_table_has_for_them);
    tcase_add_test(tc, a_table_that_was_not_filled_leaves_the_rate);
    tcase_add_loop_test(tc, a_damaged_state_file_is_measured_anew, 0, ARRAY_LEN(damages));
    tcase_add_test(
        tc, what_was_measured_long_ago_is_measured_anew_and_without_measuring_it_is_not_known);
    tcase_add_test(tc, what_a_small_file_says_is_used_but_not_kept);
    tcase_add_test(tc, measuring_is_broken_off_between_any_two_cells_and_nothing_is_kept);
    tcase_add_test(tc, a_state_folder_that_cannot_be_written_is_no_error);
    tcase_add_test(tc, an_empty_file_and_no_file_are_errors);
    return tc;
}
