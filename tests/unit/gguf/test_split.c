/* Models in several files. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/alloc.h"
#include "common/file.h"
#include "tests/unit/gguf/helper.h"

#define PARTS 3

/* What each part says of itself; changed by a test before write_parts. */
struct said {
    int no, count, n_tensors; /* -1: the key is left out */
    const char *tensor;
};

static struct said said[PARTS];
static char dir[] = "/tmp/gguf-XXXXXX";

static char *part_path(int i)
{
    return xasprintf("%s/m-%05d-of-%05d.gguf", dir, i + 1, PARTS);
}

static void setup(void)
{
    static const char *const names[PARTS] = {"a", "b", "c"};

    strcpy(dir + strlen(dir) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    for (int i = 0; i < PARTS; i++)
        said[i] = (struct said){.no = i, .count = PARTS, .n_tensors = PARTS, .tensor = names[i]};
}

static void teardown(void)
{
    for (int i = 0; i < PARTS; i++) {
        char *path = part_path(i);

        unlink(path);
        free(path);
    }
    rmdir(dir);
}

static void write_parts(void)
{
    for (int i = 0; i < PARTS; i++) {
        struct gguf_writer w = {0};
        char *path = part_path(i);

        gguf_writer_string(&w, "general.architecture", i ? "other" : "llama");
        if (said[i].no >= 0)
            gguf_writer_int(&w, "split.no", GGUF_U16, said[i].no);
        if (said[i].count >= 0)
            gguf_writer_int(&w, "split.count", GGUF_U16, said[i].count);
        if (said[i].n_tensors >= 0)
            gguf_writer_int(&w, "split.tensors.count", GGUF_I32, said[i].n_tensors);
        gguf_writer_tensor(&w, said[i].tensor, 0, 1, (const uint64_t[]){4}, NULL);
        gguf_writer_save(&w, path);
        gguf_writer_clear(&w);
        free(path);
    }
}

static int open_first(struct gguf **ret, struct err *err)
{
    char *path = part_path(0);
    int r = gguf_open(path, ret, err);

    free(path);
    return r;
}

static void expect_split_refused(enum err_kind kind, const char *part)
{
    struct gguf *g = NULL;
    struct err err = {0};

    ck_assert_int_eq(open_first(&g, &err), -(int)kind);
    ck_assert_msg(strstr(err.text, part) != NULL, "'%s' is not in: %s", part, err.text);
    ck_assert_ptr_null(g);
}

START_TEST(the_first_part_opens_all_and_gives_the_metadata)
{
    struct gguf *g = NULL;
    struct err err = {0};
    struct view arch;

    write_parts();
    ck_assert_int_eq(open_first(&g, &err), 0);
    ck_assert_uint_eq(gguf_parts(g), PARTS);
    ck_assert_uint_eq(gguf_n_tensors(g), PARTS);
    for (unsigned i = 0; i < PARTS; i++) {
        char *path = part_path((int)i);

        ck_assert_uint_eq(gguf_tensor_at(g, i)->part, i);
        ck_assert_str_eq(gguf_path(g, i), path);
        free(path);
    }
    ck_assert_int_ne(gguf_fd(g, 0), gguf_fd(g, 1));
    ck_assert_int_eq(gguf_get_string(g, "general.architecture", &arch, &err), 1);
    ck_assert(view_is(arch, "llama"));
    ck_assert_uint_eq(gguf_find_tensor(g, "c")->part, 2);
    gguf_close(g);
}
END_TEST

START_TEST(a_later_part_alone_is_refused_with_what_to_do)
{
    char *path = part_path(1);
    struct gguf *g = NULL;
    struct err err = {0};

    write_parts();
    ck_assert_int_eq(gguf_open(path, &g, &err), -ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.text, "open the first part"));
    free(path);
}
END_TEST

START_TEST(a_part_that_is_not_there_is_refused_by_name)
{
    char *path = part_path(2);

    write_parts();
    unlink(path);
    expect_split_refused(ERR_NOT_FOUND, "m-00003-of-00003.gguf");
    free(path);
}
END_TEST

START_TEST(parts_that_contradict_each_other_are_refused)
{
    static const struct {
        int part;
        struct said said;
        const char *sentence;
    } cases[] = {
        {1, {0, 3, 3, "b"}, "part 2"},
        {1, {2, 3, 3, "b"}, "part 2"},
        {1, {-1, 3, 3, "b"}, "part 2"},
        {1, {1, 2, 3, "b"}, "does not belong"},
        {1, {1, -1, 3, "b"}, "does not belong"},
        {2, {2, 3, 4, "c"}, "a model of 4 tensors"},
        {2, {2, 3, 3, "a"}, "'a' twice"},
        {0, {0, 2, 3, "a"}, "name must end in"},
        {0, {1, 3, 3, "a"}, "first part"},
        {0, {-1, 3, 3, "a"}, "no key 'split.no'"},
        {0, {0, 3, -1, "a"}, "no key 'split.tensors.count'"},
        {0, {0, 60000, 3, "a"}, ""},
        {0, {5, 1, 3, "a"}, "single file"},
    };

    said[cases[_i].part] = cases[_i].said;
    write_parts();
    expect_split_refused(cases[_i].said.count == 60000 ? ERR_UNSUPPORTED : ERR_FORMAT,
                         cases[_i].sentence);
}
END_TEST

START_TEST(the_number_of_tensors_is_that_of_all_parts)
{
    for (int i = 0; i < PARTS; i++)
        said[i].n_tensors = 4;
    write_parts();
    expect_split_refused(ERR_FORMAT, "hold 3 tensors");
}
END_TEST

START_TEST(a_split_of_one_is_a_single_file_of_any_name)
{
    struct gguf_writer w = {0};

    gguf_writer_int(&w, "split.no", GGUF_U16, 0);
    gguf_writer_int(&w, "split.count", GGUF_U16, 1);
    gguf_writer_tensor(&w, "a", 0, 1, (const uint64_t[]){4}, NULL);
    gguf_close(open_written(&w));
    gguf_writer_string(&w, "split.count", "1");
    gguf_writer_tensor(&w, "a", 0, 1, (const uint64_t[]){4}, NULL);
    expect_refused(&w, ERR_FORMAT, "split.count");
}
END_TEST

START_TEST(opening_and_refusing_leaves_no_descriptor_open)
{
    struct gguf *g = NULL;
    struct err err = {0};
    int before, after;

    said[2].no = 9;
    write_parts();
    before = dup(0);
    close(before);
    ck_assert_int_lt(open_first(&g, &err), 0);
    after = dup(0);
    close(after);
    ck_assert_int_eq(before, after);
}
END_TEST

TCase *tcase_gguf_split(void);
TCase *tcase_gguf_split(void)
{
    TCase *tc = tcase_create("split");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, the_first_part_opens_all_and_gives_the_metadata);
    tcase_add_test(tc, a_later_part_alone_is_refused_with_what_to_do);
    tcase_add_test(tc, a_part_that_is_not_there_is_refused_by_name);
    tcase_add_loop_test(tc, parts_that_contradict_each_other_are_refused, 0, 13);
    tcase_add_test(tc, the_number_of_tensors_is_that_of_all_parts);
    tcase_add_test(tc, a_split_of_one_is_a_single_file_of_any_name);
    tcase_add_test(tc, opening_and_refusing_leaves_no_descriptor_open);
    return tc;
}
