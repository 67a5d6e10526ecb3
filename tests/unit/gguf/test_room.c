/* Room is asked for before it is taken, whatever the file: the heap is never ahead of what was asked. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/alloc.h"
#include "daemon/gguf/gguf_priv.h"
#include "tests/support/heap.h"
#include "tests/unit/gguf/helper.h"

TCase *tcase_gguf_room(void);

/* A key of so many bytes that begins with a number. */
static void add_key(struct gguf_writer *w, size_t i, size_t len)
{
    char *key = xmalloc(len + 16);
    size_t n = (size_t)snprintf(key, 16, "%zu.", i);

    if (n < len)
        memset(key + n, 'k', len - n);
    gguf_writer_begin(w, (struct view){key, MAX(len, n)}, GGUF_U8);
    gguf_writer_raw(w, "", 1);
    free(key);
}

static void long_keys(struct gguf_writer *w)
{
    for (size_t i = 0; i < 300; i++)
        add_key(w, i, GGUF_KEY_MAX);
}

/* Just above a power of two, where a table has grown and is emptiest. */
static void many_keys(struct gguf_writer *w)
{
    for (size_t i = 0; i < 32769; i++)
        add_key(w, i, 1);
}

static void keys_of_middle_length(struct gguf_writer *w)
{
    for (size_t i = 0; i < 30000; i++)
        add_key(w, i, 200);
}

static void long_tensor_names(struct gguf_writer *w)
{
    for (unsigned i = 0; i < 32769; i++) {
        char name[GGUF_NAME_MAX + 1];

        snprintf(name, sizeof name, "%063u", i);
        gguf_writer_declare(w, name, 0, 1, (uint64_t[]){1});
    }
}

static void long_strings(struct gguf_writer *w)
{
    const size_t n = 200, len = (128 << 10) + 1;
    struct view *strings = XNEW_ARRAY(struct view, n);
    char *text = xcalloc(len, 1);

    for (size_t i = 0; i < n; i++)
        strings[i] = (struct view){text, len};
    gguf_writer_views(w, "strings", strings, n);
    free(strings);
    free(text);
}

static void many_strings(struct gguf_writer *w)
{
    const size_t n = 1 << 20;
    struct view *strings = XNEW_ARRAY(struct view, n);

    gguf_writer_views(w, "strings", strings, n);
    free(strings);
}

static void (*const hostile[])(struct gguf_writer *w) = {
    long_keys, many_keys, keys_of_middle_length, long_tensor_names, long_strings, many_strings};

START_TEST(a_hostile_file_takes_no_more_than_was_asked_for)
{
    struct heap_book b = {0};
    const struct gguf_room room = {heap_ask, &b};
    struct gguf_writer w = {0};
    struct gguf *g = NULL;
    struct err err = {0};
    char *path;
    int fd;

    if (!heap_counts())
        return;
    hostile[_i](&w);
    fd = gguf_writer_memfd(&w);
    gguf_writer_clear(&w);
    path = gguf_writer_fd_path(fd);
    b.before = heap_used();
    ck_assert_msg(gguf_open_within(path, &room, &g, &err) == 0, "%s", err.text);
    heap_look(&b);
    ck_assert_msg(b.over <= HEAP_ALLOW, "%zu bytes more than the %zu that were asked for", b.over,
                  b.asked);
    ck_assert_uint_le(gguf_memory_bytes(g), b.asked);
    ck_assert_uint_le(heap_used() - b.before, gguf_memory_bytes(g) + HEAP_ALLOW);
    gguf_close(g);
    free(path);
    close(fd);
}
END_TEST

#define PARTS  300
#define LEVELS 14

/* A folder whose path is nearly as long as a path may be; *ret_dirs: from the first to the last. */
static char *deep_folder(char *ret_dirs[LEVELS])
{
    char name[241], *path = xstrdup("/tmp/gguf-XXXXXX");

    memset(name, 'd', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    ck_assert_ptr_nonnull(mkdtemp(path));
    for (int i = 0; i < LEVELS; i++) {
        ret_dirs[i] = path;
        path = xasprintf("%s/%s", path, name);
        if (i + 1 < LEVELS)
            ck_assert_int_eq(mkdir(path, 0700), 0);
    }
    free(path);
    return ret_dirs[LEVELS - 1];
}

static char *part_in(const char *dir, int i)
{
    return xasprintf("%s/m-%05d-of-%05d.gguf", dir, i + 1, PARTS);
}

START_TEST(the_paths_of_a_split_are_asked_for)
{
    struct heap_book b = {0};
    const struct gguf_room room = {heap_ask, &b};
    struct gguf *g = NULL;
    struct err err = {0};
    char *dirs[LEVELS], *dir, *path;

    if (!heap_counts())
        return;
    dir = deep_folder(dirs);
    for (int i = 0; i < PARTS; i++) {
        struct gguf_writer w = {0};

        path = part_in(dir, i);
        gguf_writer_int(&w, "split.no", GGUF_U16, i);
        gguf_writer_int(&w, "split.count", GGUF_U16, PARTS);
        gguf_writer_int(&w, "split.tensors.count", GGUF_I32, 0);
        gguf_writer_save(&w, path);
        gguf_writer_clear(&w);
        free(path);
    }
    path = part_in(dir, 0);
    b.before = heap_used();
    ck_assert_msg(gguf_open_within(path, &room, &g, &err) == 0, "%s", err.text);
    ck_assert_uint_ge(heap_used() - b.before, PARTS * strlen(path));
    ck_assert_uint_le(gguf_memory_bytes(g), b.asked);
    ck_assert_uint_le(heap_used() - b.before, gguf_memory_bytes(g) + HEAP_ALLOW);
    gguf_close(g);
    free(path);
    for (int i = 0; i < PARTS; i++) {
        path = part_in(dir, i);
        unlink(path);
        free(path);
    }
    for (int i = LEVELS; i-- > 0; free(dirs[i]))
        rmdir(dirs[i]);
}
END_TEST

TCase *tcase_gguf_room(void)
{
    TCase *tc = tcase_create("room");

    tcase_add_loop_test(tc, a_hostile_file_takes_no_more_than_was_asked_for, 0, ARRAY_LEN(hostile));
    tcase_add_test(tc, the_paths_of_a_split_are_asked_for);
    return tc;
}
