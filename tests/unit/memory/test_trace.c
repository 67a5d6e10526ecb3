/* What is written is read again; what is damaged is refused. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/alloc.h"
#include "common/file.h"
#include "daemon/memory/trace.h"

TCase *tcase_memory_trace(void);

static char path[64];
static const struct trace_shape shape = {3, 300, 2, "tiny moe"};

static void set_up(void)
{
    snprintf(path, sizeof path, "/tmp/rnbd-trace-%d", (int)getpid());
}

static void tear_down(void)
{
    unlink(path);
}

static void write_three(void)
{
    struct trace_writer *w;
    struct err err = {0};

    ck_assert_msg(trace_writer_open(path, &shape, &w, &err) == 0, "%s", err.text);
    for (int t = 0; t < 3; t++) {
        for (unsigned l = 0; l < 3; l++)
            trace_writer_layer(w, l, (const int32_t[]){t * 100 + (int)l, 299}, t == 1 ? 1 : 2);
        trace_writer_layer(w, 99, (const int32_t[]){1, 2}, 2);
        ck_assert_int_eq(trace_writer_token(w, t == 0, &err), 0);
    }
    ck_assert_uint_eq(trace_writer_tokens(w), 3);
    ck_assert_int_eq(trace_writer_close(w, &err), 0);
}

START_TEST(what_is_written_is_read_again)
{
    struct trace t;
    struct err err = {0};

    write_three();
    ck_assert_msg(trace_read(path, 1 << 20, &t, &err) == 0, "%s", err.text);
    ck_assert_uint_eq(t.n_tokens, 3);
    ck_assert_str_eq(t.shape.model, "tiny moe");
    ck_assert_uint_eq(t.shape.n_experts, 300);
    for (int k = 0; k < 3; k++) {
        ck_assert_int_eq(t.prefill[k], k == 0);
        for (unsigned l = 0; l < 3; l++) {
            ck_assert_uint_eq(trace_ids(&t, (size_t)k, l)[0], (unsigned)k * 100 + l);
            ck_assert_uint_eq(trace_ids(&t, (size_t)k, l)[1], k == 1 ? TRACE_NONE : 299);
        }
    }
    trace_clear(&t);
}
END_TEST

START_TEST(a_cut_file_ends_before_the_cut_or_is_refused)
{
    struct str text = {0};
    struct err err = {0};
    size_t head = 24 + strlen("tiny moe"), record = 1 + 3 * 2 * 2;

    write_three();
    ck_assert_int_ge(file_read_all(path, 1 << 20, &text, &err), 0);
    ck_assert_uint_eq(text.len, head + 3 * record);
    for (size_t n = 0; n < text.len; n++) {
        struct trace t = {0};
        int r;

        ck_assert_int_eq(file_replace(path, text.p, n, 0600, &err), 0);
        r = trace_read(path, 1 << 20, &t, &err);
        ck_assert_int_eq(r, n < head ? -ERR_FORMAT : 0);
        if (r == 0)
            ck_assert_uint_eq(t.n_tokens, (n - head) / record);
        trace_clear(&t);
    }
    str_clear(&text);
}
END_TEST

/* One byte of the file, and what it becomes. */
static const struct {
    size_t at;
    char byte;
} damages[] = {{0, 'X'},   {8, 0},     {9, 0x7f},  {12, 0},       {13, 0x7f},        {16, 0},
               {17, 0x7f}, {20, 0x7f}, {21, 0x7f}, {24 + 8, 'x'}, {24 + 8 + 2, 0x7f}};

START_TEST(a_damaged_file_is_refused)
{
    struct str text = {0};
    struct trace t = {0};
    struct err err = {0};

    write_three();
    ck_assert_int_ge(file_read_all(path, 1 << 20, &text, &err), 0);
    text.p[damages[_i].at] = damages[_i].byte;
    ck_assert_int_eq(file_replace(path, text.p, text.len, 0600, &err), 0);
    ck_assert_int_eq(trace_read(path, 1 << 20, &t, &err), -ERR_FORMAT);
    str_clear(&text);
}
END_TEST

START_TEST(no_place_to_write_and_no_experts_are_errors_with_a_name)
{
    struct trace_writer *w;
    struct err err = {0};
    struct trace_shape dense = {0, 0, 0, "smol"};

    ck_assert_int_eq(trace_writer_open("/nowhere/at/all", &shape, &w, &err), -ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.text, "/nowhere/at/all"));
    ck_assert_int_eq(trace_writer_open(path, &dense, &w, &err), -ERR_UNPROCESSABLE);
    ck_assert_ptr_nonnull(strstr(err.text, "smol"));
    ck_assert_int_eq(trace_writer_close(NULL, &err), 0);
    /* a full disk shows at the latest when the file is closed */
    ck_assert_int_eq(trace_writer_open("/dev/full", &shape, &w, &err), 0);
    trace_writer_token(w, false, &err);
    ck_assert_int_eq(trace_writer_close(w, &err), -ERR_IO);
}
END_TEST

TCase *tcase_memory_trace(void)
{
    TCase *tc = tcase_create("trace");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, what_is_written_is_read_again);
    tcase_add_test(tc, a_cut_file_ends_before_the_cut_or_is_refused);
    tcase_add_loop_test(tc, a_damaged_file_is_refused, 0, ARRAY_LEN(damages));
    tcase_add_test(tc, no_place_to_write_and_no_experts_are_errors_with_a_name);
    return tc;
}
