/* Opens what a gguf_writer holds; see helper.h. */
#include "tests/unit/gguf/helper.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int open_it(struct gguf_writer *w, struct gguf **ret, struct err *err)
{
    int fd = gguf_writer_memfd(w);
    char *path = gguf_writer_fd_path(fd);
    int r = gguf_open(path, ret, err);

    free(path);
    close(fd);
    gguf_writer_clear(w);
    return r;
}

struct gguf *open_written(struct gguf_writer *take_w)
{
    struct err err = {0};
    struct gguf *g = NULL;
    int r = open_it(take_w, &g, &err);

    ck_assert_msg(r == 0, "refused: %s", err.text);
    return g;
}

void expect_refused(struct gguf_writer *take_w, enum err_kind kind, const char *part)
{
    struct err err = {0};
    struct gguf *g = NULL;
    int r = open_it(take_w, &g, &err);

    ck_assert_msg(r < 0, "was not refused (wanted: %s)", part);
    ck_assert_ptr_null(g);
    ck_assert_msg(r == -(int)kind, "%s instead of %s: %s", err_name(r), err_name((int)kind),
                  err.text);
    ck_assert_msg(strstr(err.text, part) != NULL, "'%s' is not in: %s", part, err.text);
}

void write_sound(struct gguf_writer *w)
{
    gguf_writer_string(w, "general.architecture", "llama");
    gguf_writer_tensor(w, "output.weight", 0, 2, (const uint64_t[]){8, 4}, NULL);
}
