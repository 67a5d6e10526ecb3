/* Log lines as they reach stderr. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/utf8.h"

static int read_end = -1;

/* Points stderr at a pipe; each test runs in a process of its own. */
static void catch_lines(void)
{
    int ends[2];

    ck_assert_int_eq(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    read_end = ends[0];
    ck_assert_int_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    close(ends[1]);
}

static const char *caught(void)
{
    static char text[65536];
    ssize_t n = read(read_end, text, sizeof text - 1);

    text[n > 0 ? n : 0] = '\0';
    return text;
}

START_TEST(a_line_has_level_room_message_and_pairs)
{
    unsetenv("JOURNAL_STREAM");
    log_init(LOG_LEVEL_INFO);
    catch_lines();
    log_write(LOG_LEVEL_NOTICE, "memory", "evicted model", "model=%s bytes=%d", "a", 5);
    ck_assert_str_eq(caught(), "notice memory: evicted model model=a bytes=5\n");
}
END_TEST

START_TEST(the_journal_gets_a_priority)
{
    setenv("JOURNAL_STREAM", "1:2", 1);
    log_init(LOG_LEVEL_INFO);
    catch_lines();
    log_write(LOG_LEVEL_ERROR, "http", "no", "x=%d", 1);
    log_write(LOG_LEVEL_INFO, "http", "yes", "x=%d", 2);
    ck_assert_str_eq(caught(), "<3>http: no x=1\n<6>http: yes x=2\n");
}
END_TEST

START_TEST(the_room_is_known_from_the_folder)
{
    unsetenv("JOURNAL_STREAM");
    log_init(LOG_LEVEL_INFO);
    catch_lines();
    log_warning("careful", "n=%d", 1);
    ck_assert_str_eq(caught(), "warning common: careful n=1\n");
}
END_TEST

START_TEST(a_message_without_pairs_ends_clean)
{
    log_init(LOG_LEVEL_INFO);
    catch_lines();
    log_write(LOG_LEVEL_INFO, "x", "ready", "%s", "");
    ck_assert_ptr_nonnull(strstr(caught(), "x: ready\n"));
}
END_TEST

START_TEST(what_is_below_the_level_is_not_written)
{
    log_init(LOG_LEVEL_WARNING);
    catch_lines();
    log_info("a", "x=%d", 1);
    log_debug("a", "x=%d", 1);
    log_notice("a", "x=%d", 1);
    ck_assert_str_eq(caught(), "");
    log_set_level(LOG_LEVEL_DEBUG);
    log_debug("a", "x=%d", 1);
    ck_assert_ptr_nonnull(strstr(caught(), "a x=1\n"));
}
END_TEST

START_TEST(a_name_cannot_begin_a_line_of_its_own)
{
    const char *line;

    log_init(LOG_LEVEL_INFO);
    catch_lines();
    log_info("loaded", "model='%s'", "a\n<0>kernel: panic\x1B[2J\r\x7F");
    line = caught();
    ck_assert_ptr_eq(strchr(line, '\n'), line + strlen(line) - 1);
    ck_assert_ptr_nonnull(strstr(line, "'a?<0>kernel: panic?[2J?"
                                       "?'\n"));
}
END_TEST

START_TEST(a_very_long_line_is_cut_at_a_code_point)
{
    char text[9001];
    const char *line;
    size_t len;

    for (int i = 0; i < 9000; i += 3)
        memcpy(text + i, "\xE2\x82\xAC", 4);
    log_init(LOG_LEVEL_INFO);
    for (int shift = 0; shift < 3; shift++) {
        catch_lines();
        log_info("x", "%.*s%s", shift, "ab", text);
        line = caught();
        len = strlen(line);
        ck_assert_uint_le(len, 4096);
        ck_assert_uint_gt(len, 4090);
        ck_assert_int_eq(line[len - 1], '\n');
        ck_assert(utf8_valid(line, len));
    }
}
END_TEST

START_TEST(a_reader_that_is_gone_or_full_costs_lines_alone)
{
    log_init(LOG_LEVEL_INFO);
    catch_lines();
    errno = ENOENT;
    for (int i = 0; i < 10000; i++)
        log_info("filling", "i=%d", i);
    ck_assert_int_eq(errno, ENOENT);
    close(read_end);
    log_info("gone", "i=%d", 1);
    close(STDERR_FILENO);
    log_info("closed", "i=%d", 1);
    ck_assert_int_eq(errno, ENOENT);
}
END_TEST

START_TEST(levels_have_names)
{
    ck_assert_int_eq(log_level_of("error"), LOG_LEVEL_ERROR);
    ck_assert_int_eq(log_level_of("debug"), LOG_LEVEL_DEBUG);
    ck_assert_int_eq(log_level_of("Debug"), -1);
    ck_assert_int_eq(log_level_of(""), -1);
}
END_TEST

TCase *tcase_common_log(void);
TCase *tcase_common_log(void)
{
    TCase *tc = tcase_create("log");

    tcase_add_test(tc, a_line_has_level_room_message_and_pairs);
    tcase_add_test(tc, the_journal_gets_a_priority);
    tcase_add_test(tc, the_room_is_known_from_the_folder);
    tcase_add_test(tc, a_message_without_pairs_ends_clean);
    tcase_add_test(tc, what_is_below_the_level_is_not_written);
    tcase_add_test(tc, a_name_cannot_begin_a_line_of_its_own);
    tcase_add_test(tc, a_very_long_line_is_cut_at_a_code_point);
    tcase_add_test(tc, a_reader_that_is_gone_or_full_costs_lines_alone);
    tcase_add_test(tc, levels_have_names);
    return tc;
}
