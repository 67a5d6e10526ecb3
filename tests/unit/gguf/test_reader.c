/* Header and metadata of a file, sound and hostile. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/alloc.h"
#include "daemon/gguf/gguf_priv.h"
#include "tests/unit/gguf/helper.h"

START_TEST(a_sound_file_opens_with_its_values_and_tensors)
{
    struct gguf_writer w = {0};
    struct gguf *g;

    write_sound(&w);
    g = open_written(&w);
    ck_assert_uint_eq(gguf_version(g), 3);
    ck_assert_uint_eq(gguf_parts(g), 1);
    ck_assert_uint_eq(gguf_n_values(g), 1);
    ck_assert_uint_eq(gguf_n_tensors(g), 1);
    ck_assert(view_is(gguf_value_at(g, 0)->key, "general.architecture"));
    ck_assert_uint_ge(gguf_memory_bytes(g), 8 * 4);
    ck_assert_int_ge(gguf_fd(g, 0), 0);
    gguf_close(g);
}
END_TEST

START_TEST(version_two_opens_as_version_three_does)
{
    struct gguf_writer w = {.version = 2};
    struct gguf *g;

    write_sound(&w);
    g = open_written(&w);
    ck_assert_uint_eq(gguf_version(g), 2);
    gguf_close(g);
}
END_TEST

static const struct {
    uint32_t version;
    const char *part;
} versions[] = {{1, "version 1"},
                {4, "version 4"},
                {0xffffffff, "version 4294967295"},
                {0x03000000, "big-endian"},
                {0x02000000, "big-endian"}};

START_TEST(other_versions_and_byte_orders_are_refused_by_name)
{
    struct gguf_writer w = {.version = versions[_i].version};

    write_sound(&w);
    expect_refused(&w, ERR_UNSUPPORTED, versions[_i].part);
}
END_TEST

/* The start of a file, as bytes, in the place of a GGUF one. */
static const struct {
    const char *bytes;
    enum err_kind kind;
    const char *part;
} starts[] = {
    {"", ERR_FORMAT, "too short"},
    {"GGUF", ERR_FORMAT, "too short"},
    {"ELF!aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", ERR_FORMAT, "not a GGUF file"},
    {"ggufaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", ERR_FORMAT, "not a GGUF file"},
    {"tjggaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", ERR_UNSUPPORTED, "before GGUF"},
};

START_TEST(what_is_no_gguf_file_is_refused)
{
    char path[] = "/tmp/gguf-XXXXXX";
    int fd = mkstemp(path);
    size_t n = strlen(starts[_i].bytes);
    struct gguf *g = NULL;
    struct err err = {0};

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, starts[_i].bytes, n), (int)n);
    ck_assert_int_eq(gguf_open(path, &g, &err), -(int)starts[_i].kind);
    ck_assert_ptr_nonnull(strstr(err.text, starts[_i].part));
    close(fd);
    unlink(path);
}
END_TEST

START_TEST(a_missing_file_a_folder_and_a_fifo_are_refused_without_waiting)
{
    char dir[] = "/tmp/gguf-XXXXXX";
    char *fifo;
    struct gguf *g = NULL;
    struct err err = {0};

    ck_assert_ptr_nonnull(mkdtemp(dir));
    fifo = xasprintf("%s/fifo", dir);
    ck_assert_int_eq(mkfifo(fifo, 0600), 0);
    ck_assert_int_eq(gguf_open("/nonexistent.gguf", &g, &err), -ERR_NOT_FOUND);
    ck_assert_int_eq(gguf_open(dir, &g, &err), -ERR_FORMAT);
    ck_assert_int_eq(gguf_open(fifo, &g, &err), -ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.text, "regular file"));
    unlink(fifo);
    rmdir(dir);
    free(fifo);
}
END_TEST

static const int64_t lies[] = {1, 1000, (int64_t)1 << 40, INT64_MAX, INT64_MIN, -2};

START_TEST(a_count_of_values_beyond_the_file_is_refused)
{
    struct gguf_writer w = {.extra_values = lies[_i]};

    write_sound(&w);
    expect_refused(&w, ERR_FORMAT, lies[_i] == 1 ? "tensor" : "metadata keys");
}
END_TEST

START_TEST(a_count_of_tensors_beyond_the_file_is_refused)
{
    struct gguf_writer w = {.extra_tensors = lies[_i]};

    write_sound(&w);
    expect_refused(&w, ERR_FORMAT, "tensor");
}
END_TEST

START_TEST(a_file_cut_anywhere_is_refused_with_a_sentence)
{
    struct gguf_writer sound = {0};
    struct str bytes = {0};
    size_t whole;

    write_sound(&sound);
    gguf_writer_strings(&sound, "x.s", (const char *const[]){"one", "two"}, 2);
    gguf_writer_bytes(&sound, &bytes);
    gguf_writer_clear(&sound);
    whole = bytes.len;
    str_clear(&bytes);
    for (size_t cut = 1; cut <= whole; cut++) {
        struct gguf_writer w = {.cut_bytes = cut};

        write_sound(&w);
        gguf_writer_strings(&w, "x.s", (const char *const[]){"one", "two"}, 2);
        expect_refused(&w, ERR_FORMAT, "");
    }
}
END_TEST

START_TEST(bytes_after_the_last_tensor_do_no_harm)
{
    struct gguf_writer w = {.trailing_bytes = 1000};
    struct gguf *g;

    write_sound(&w);
    g = open_written(&w);
    ck_assert_uint_gt(gguf_file_bytes(g), 1000);
    gguf_close(g);
}
END_TEST

static const struct {
    const char *name;
    size_t len;
    const char *part;
} bad_keys[] = {{"", 0, "without a name"},
                {"a\0b", 3, "not text"},
                {"a\xff", 2, "not text"},
                {"a\x1b[31m", 6, "not text"}};

START_TEST(keys_are_text_of_at_least_one_byte)
{
    struct gguf_writer w = {0};

    write_sound(&w);
    gguf_writer_begin(&w, (struct view){bad_keys[_i].name, bad_keys[_i].len}, GGUF_U8);
    gguf_writer_raw(&w, "x", 1);
    expect_refused(&w, ERR_FORMAT, bad_keys[_i].part);
}
END_TEST

START_TEST(the_same_key_twice_is_refused_by_name)
{
    struct gguf_writer w = {0};

    write_sound(&w);
    gguf_writer_u32(&w, "llama.block_count", 1);
    gguf_writer_u32(&w, "llama.block_count", 1);
    expect_refused(&w, ERR_FORMAT, "'llama.block_count' twice");
}
END_TEST

START_TEST(many_keys_are_checked_in_time_that_does_not_square)
{
    struct gguf_writer w = {0};
    struct gguf *g;

    for (int i = 0; i < 60000; i++) {
        char key[16];

        snprintf(key, sizeof key, "k%d", i);
        gguf_writer_int(&w, key, GGUF_U8, 0);
    }
    g = open_written(&w);
    ck_assert_ptr_nonnull(gguf_find(g, "k59999"));
    gguf_close(g);
    for (int i = 0; i < 70000; i++) {
        char key[16];

        snprintf(key, sizeof key, "k%d", i);
        gguf_writer_int(&w, key, GGUF_U8, 0);
    }
    expect_refused(&w, ERR_FORMAT, "65536");
}
END_TEST

static const uint64_t lengths[] = {1000, (uint64_t)1 << 32, (uint64_t)1 << 63, UINT64_MAX - 7,
                                   UINT64_MAX};

START_TEST(a_string_longer_than_the_file_is_refused)
{
    struct gguf_writer w = {0};

    gguf_writer_begin(&w, VIEW("x"), GGUF_STRING);
    gguf_writer_raw_u64(&w, lengths[_i]);
    gguf_writer_raw(&w, "abc", 3);
    expect_refused(&w, ERR_FORMAT, "a string of");
}
END_TEST

START_TEST(a_key_longer_than_the_file_or_the_format_allows_is_refused)
{
    struct gguf_writer w = {0};
    char *long_key = xcalloc(70000, 1);

    gguf_writer_raw_u64(&w, lengths[_i]);
    gguf_writer_raw(&w, "abcabcabcabcabcabcabcabc", 24);
    w.n_values = 1;
    expect_refused(&w, ERR_FORMAT, "a key of");
    memset(long_key, 'k', 66000);
    gguf_writer_begin(&w, (struct view){long_key, 66000}, GGUF_U8);
    gguf_writer_raw(&w, "x", 1);
    expect_refused(&w, ERR_FORMAT, "allows 65535");
    free(long_key);
}
END_TEST

static const enum gguf_type elem_types[] = {GGUF_U8,  GGUF_BOOL, GGUF_I16,   GGUF_F32,
                                            GGUF_U64, GGUF_F64,  GGUF_STRING};

START_TEST(an_array_longer_than_the_file_is_refused_before_anything_is_allocated)
{
    static const uint64_t counts[] = {1000, (uint64_t)1 << 61, (uint64_t)1 << 63, UINT64_MAX};

    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        struct gguf_writer w = {0};

        gguf_writer_begin(&w, VIEW("x"), GGUF_ARRAY);
        gguf_writer_raw_u32(&w, elem_types[_i]);
        gguf_writer_raw_u64(&w, counts[i]);
        gguf_writer_raw(&w, "abcdefgh", 8);
        expect_refused(&w, ERR_FORMAT, "an array of");
    }
}
END_TEST

START_TEST(arrays_of_arrays_and_unknown_types_are_refused)
{
    struct gguf_writer w = {0};

    gguf_writer_begin(&w, VIEW("x"), GGUF_ARRAY);
    gguf_writer_raw_u32(&w, GGUF_ARRAY);
    gguf_writer_raw_u64(&w, 1);
    gguf_writer_raw_u64(&w, 0);
    expect_refused(&w, ERR_UNSUPPORTED, "array of arrays");
    gguf_writer_begin(&w, VIEW("x"), 13);
    gguf_writer_raw_u64(&w, 0);
    expect_refused(&w, ERR_FORMAT, "type 13");
    gguf_writer_begin(&w, VIEW("x"), UINT32_MAX);
    gguf_writer_raw_u64(&w, 0);
    expect_refused(&w, ERR_FORMAT, "type 4294967295");
    gguf_writer_begin(&w, VIEW("x"), GGUF_ARRAY);
    gguf_writer_raw_u32(&w, 99);
    gguf_writer_raw_u64(&w, 1);
    expect_refused(&w, ERR_FORMAT, "type 99");
}
END_TEST

START_TEST(a_boolean_is_zero_or_one)
{
    struct gguf_writer w = {0};

    gguf_writer_int(&w, "x.flag", GGUF_BOOL, 2);
    gguf_writer_u64(&w, "y", 0);
    expect_refused(&w, ERR_FORMAT, "'x.flag' is a boolean of value 2");
    gguf_writer_array(&w, "x.flags", GGUF_BOOL, "\1\0\3", 3);
    gguf_writer_u64(&w, "y", 0);
    expect_refused(&w, ERR_FORMAT, "'x.flags' is a boolean of value 3");
}
END_TEST

START_TEST(a_file_that_shrinks_while_it_is_read_is_an_error_and_no_signal)
{
    static const size_t sizes[] = {1000, 70000, 1 << 20};

    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct gguf_writer w = {0};
        struct gguf_cursor *c = xmalloc(sizeof *c);
        char *bytes = xmalloc(sizes[i] + 200);
        struct err err = {0};
        int fd;

        write_sound(&w);
        fd = gguf_writer_memfd(&w);
        /* The file is 256 bytes long; the cursor has seen it when it was longer. */
        gguf_cursor_init(c, "m.gguf", fd, sizes[i] + 250);
        ck_assert_int_eq(gguf_cursor_read(c, bytes, 50, &err), 0);
        ck_assert_int_eq(memcmp(bytes, "GGUF", 4), 0);
        ck_assert_int_eq(ftruncate(fd, 60), 0);
        ck_assert_int_eq(gguf_cursor_read(c, bytes, sizes[i] + 199, &err), -ERR_FORMAT);
        ck_assert_str_eq(err.text, "'m.gguf' became shorter while it was read");
        gguf_writer_clear(&w);
        close(fd);
        free(bytes);
        free(c);
    }
}
END_TEST

START_TEST(more_metadata_than_the_limit_is_refused_by_name)
{
    char path[] = "/tmp/gguf-XXXXXX";
    int fd = mkstemp(path);
    struct gguf *g = NULL;
    struct gguf_writer w = {.extra_values = 1};
    struct str bytes = {0};
    struct err err = {0};

    gguf_writer_begin(&w, VIEW("x"), GGUF_STRING);
    gguf_writer_raw_u64(&w, ((uint64_t)128 << 20) - 50);
    gguf_writer_bytes(&w, &bytes);
    ck_assert_int_eq(write(fd, bytes.p, bytes.len), (int)bytes.len);
    ck_assert_int_eq(ftruncate(fd, (off_t)1 << 32), 0);
    ck_assert_int_eq(gguf_open(path, &g, &err), -ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.text, "128 MiB"));
    gguf_writer_clear(&w);
    str_truncate(&bytes, 0);
    gguf_writer_begin(&w, VIEW("x"), GGUF_STRING);
    gguf_writer_raw_u64(&w, (uint64_t)1 << 30);
    gguf_writer_bytes(&w, &bytes);
    ck_assert_int_eq(pwrite(fd, bytes.p, bytes.len, 0), (int)bytes.len);
    ck_assert_int_eq(gguf_open(path, &g, &err), -ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.text, "128 MiB"));
    str_clear(&bytes);
    gguf_writer_clear(&w);
    close(fd);
    unlink(path);
}
END_TEST

TCase *tcase_gguf_reader(void);
TCase *tcase_gguf_reader(void)
{
    TCase *tc = tcase_create("reader");

    tcase_add_test(tc, a_sound_file_opens_with_its_values_and_tensors);
    tcase_add_test(tc, version_two_opens_as_version_three_does);
    tcase_add_loop_test(tc, other_versions_and_byte_orders_are_refused_by_name, 0,
                        ARRAY_LEN(versions));
    tcase_add_loop_test(tc, what_is_no_gguf_file_is_refused, 0, ARRAY_LEN(starts));
    tcase_add_test(tc, a_missing_file_a_folder_and_a_fifo_are_refused_without_waiting);
    tcase_add_loop_test(tc, a_count_of_values_beyond_the_file_is_refused, 0, ARRAY_LEN(lies));
    tcase_add_loop_test(tc, a_count_of_tensors_beyond_the_file_is_refused, 0, ARRAY_LEN(lies));
    tcase_add_test(tc, a_file_cut_anywhere_is_refused_with_a_sentence);
    tcase_add_test(tc, bytes_after_the_last_tensor_do_no_harm);
    tcase_add_loop_test(tc, keys_are_text_of_at_least_one_byte, 0, ARRAY_LEN(bad_keys));
    tcase_add_test(tc, the_same_key_twice_is_refused_by_name);
    tcase_add_test(tc, many_keys_are_checked_in_time_that_does_not_square);
    tcase_add_loop_test(tc, a_string_longer_than_the_file_is_refused, 0, ARRAY_LEN(lengths));
    tcase_add_loop_test(tc, a_key_longer_than_the_file_or_the_format_allows_is_refused, 0,
                        ARRAY_LEN(lengths));
    tcase_add_loop_test(tc, an_array_longer_than_the_file_is_refused_before_anything_is_allocated,
                        0, ARRAY_LEN(elem_types));
    tcase_add_test(tc, arrays_of_arrays_and_unknown_types_are_refused);
    tcase_add_test(tc, a_boolean_is_zero_or_one);
    tcase_add_test(tc, a_file_that_shrinks_while_it_is_read_is_an_error_and_no_signal);
    tcase_add_test(tc, more_metadata_than_the_limit_is_refused_by_name);
    return tc;
}
