/* Whole small files, atomic replacement, folders. */
#include <check.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "tests/support/scratch.h"

START_TEST(a_file_is_read_with_its_zero_bytes)
{
    char *path = scratch_file("a", "x\0y\n", 4);
    struct str text = {0};

    ck_assert_int_eq(file_read_all(path, 4, &text, NULL), 0);
    ck_assert_uint_eq(text.len, 4);
    ck_assert_mem_eq(text.p, "x\0y\n", 5);
    str_clear(&text);
    free(path);
}
END_TEST

START_TEST(an_empty_file_is_no_error)
{
    char *path = scratch_file("a", "", 0);
    struct str text = {0};

    ck_assert_int_eq(file_read_all(path, 0, &text, NULL), 0);
    ck_assert_str_eq(str_text(&text), "");
    str_clear(&text);
    free(path);
}
END_TEST

START_TEST(a_file_of_unknown_size_is_read_to_its_end)
{
    struct str text = {0};

    ck_assert_int_eq(file_read_all("/proc/self/status", 1 << 20, &text, NULL), 0);
    ck_assert_ptr_nonnull(strstr(str_text(&text), "VmRSS"));
    str_clear(&text);
}
END_TEST

START_TEST(a_file_that_is_larger_than_allowed_is_refused)
{
    char *path = scratch_file("a", "12345", 5);
    struct str text = {0};
    struct err err;

    ck_assert_int_eq(file_read_all(path, 4, &text, &err), -ERR_TOO_LARGE);
    ck_assert_ptr_nonnull(strstr(err.text, path));
    ck_assert_ptr_null(text.p);
    ck_assert_int_eq(file_read_all("/dev/zero", 100000, &text, &err), -ERR_TOO_LARGE);
    free(path);
}
END_TEST

START_TEST(a_file_that_is_not_there_is_named)
{
    struct str text = {0};
    struct err err;

    ck_assert_int_eq(file_read_all("/nowhere/x", 10, &text, &err), -ERR_NOT_FOUND);
    ck_assert_str_eq(err.text, "cannot open '/nowhere/x': No such file or directory");
    ck_assert_int_eq(file_read_all("/", 10, &text, &err), -ERR_IO);
    ck_assert_str_eq(err.text, "cannot read '/': Is a directory");
}
END_TEST

START_TEST(a_file_is_replaced_whole_and_leaves_nothing_beside)
{
    char *path = scratch_file("a", "old and long", 12);
    struct str text = {0};
    struct stat st;

    ck_assert_int_eq(file_replace(path, "new", 3, 0640, NULL), 0);
    ck_assert_int_eq(file_read_all(path, 100, &text, NULL), 0);
    ck_assert_str_eq(text.p, "new");
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0640);
    /* The folder then holds "." and ".." and the file. */
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(scratch_make()), 0);
    str_clear(&text);
    free(path);
}
END_TEST

START_TEST(a_file_in_no_folder_cannot_be_replaced)
{
    struct err err;

    ck_assert_int_lt(file_replace("/nowhere/x", "a", 1, 0600, &err), 0);
    ck_assert_ptr_nonnull(strstr(err.text, "/nowhere/x"));
}
END_TEST

START_TEST(a_folder_in_the_way_is_not_replaced)
{
    char *path = scratch_path("d");
    struct err err;

    ck_assert_int_eq(mkdir(path, 0700), 0);
    ck_assert_int_eq(file_replace(path, "a", 1, 0600, &err), -ERR_IO);
    ck_assert_int_eq(rmdir(path), 0);
    ck_assert_int_eq(rmdir(scratch_make()), 0);
    free(path);
}
END_TEST

START_TEST(a_range_is_read_exactly_or_not_at_all)
{
    char *path = scratch_file("a", "0123456789", 10);
    int fd = open(path, O_RDONLY);
    struct err err;
    char buf[16] = {0};

    ck_assert_int_eq(file_pread_all(fd, buf, 4, 3, "a", &err), 0);
    ck_assert_str_eq(buf, "3456");
    ck_assert_int_eq(file_pread_all(fd, buf, 0, 100, "a", &err), 0);
    ck_assert_int_eq(file_pread_all(fd, buf, 4, 8, "a", &err), -ERR_IO);
    ck_assert_str_eq(err.text, "'a' ends at byte 10, 2 bytes too early");
    ck_assert_int_eq(file_pread_all(fd, buf, 1, -1, "a", &err), -ERR_IO);
    ck_assert_int_eq(file_pread_all(fd, buf, SIZE_MAX, 0, "a", &err), -ERR_IO);
    ck_assert_int_eq(file_pread_all(fd, buf, 2, INT64_MAX - 1, "a", &err), -ERR_IO);
    close(fd);
    ck_assert_int_eq(file_pread_all(-1, buf, 1, 0, "a", &err), -ERR_IO);
    free(path);
}
END_TEST

START_TEST(folders_are_made_down_to_the_last)
{
    char *path = scratch_path("a//b/c/");
    char *file;
    struct err err;

    ck_assert_int_eq(file_make_dirs(path, 0700, &err), 0);
    ck_assert(file_exists(path));
    ck_assert_int_eq(file_make_dirs(path, 0700, &err), 0);
    ck_assert_int_eq(file_make_dirs("/", 0700, &err), 0);
    file = scratch_file("a/f", "", 0);
    ck_assert_int_eq(file_make_dirs(file, 0700, &err), -ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.text, file));
    free(file);
    file = scratch_path("a/f/g");
    ck_assert_int_eq(file_make_dirs(file, 0700, &err), -ERR_IO);
    ck_assert(!file_exists(file));
    free(file);
    free(path);
}
END_TEST

START_TEST(paths_are_joined_with_one_slash)
{
    static const char *const cases[][3] = {
        {"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"/", "b", "/b"}, {"", "b", "b"}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *path = file_join(cases[i][0], cases[i][1]);

        ck_assert_str_eq(path, cases[i][2]);
        free(path);
    }
}
END_TEST

TCase *tcase_common_file(void);
TCase *tcase_common_file(void)
{
    TCase *tc = tcase_create("file");

    tcase_add_test(tc, a_file_is_read_with_its_zero_bytes);
    tcase_add_test(tc, an_empty_file_is_no_error);
    tcase_add_test(tc, a_file_of_unknown_size_is_read_to_its_end);
    tcase_add_test(tc, a_file_that_is_larger_than_allowed_is_refused);
    tcase_add_test(tc, a_file_that_is_not_there_is_named);
    tcase_add_test(tc, a_file_is_replaced_whole_and_leaves_nothing_beside);
    tcase_add_test(tc, a_file_in_no_folder_cannot_be_replaced);
    tcase_add_test(tc, a_folder_in_the_way_is_not_replaced);
    tcase_add_test(tc, a_range_is_read_exactly_or_not_at_all);
    tcase_add_test(tc, folders_are_made_down_to_the_last);
    tcase_add_test(tc, paths_are_joined_with_one_slash);
    return tc;
}
