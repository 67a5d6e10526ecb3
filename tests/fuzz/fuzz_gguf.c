/* A model file from anywhere: opened, and what it promises once open. */
/* room: daemon/gguf */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/alloc.h"
#include "common/utf8.h"
#include "daemon/gguf/gguf.h"
#include "tests/fuzz/fuzz.h"

static volatile double sink; /* keeps reads of elements from being left out */

static void read_value(const struct gguf *g, const struct gguf_value *v)
{
    char *key = view_dup(v->key);
    struct err err = {0};
    uint64_t n = 7;
    float f = 7;
    bool b;
    struct view s;

    FUZZ_REQUIRE(v->key.len > 0 && utf8_valid(v->key.p, v->key.len));
    FUZZ_REQUIRE(gguf_find(g, key) == v);
    if (gguf_get_u64(g, key, 1, 1000, &n, &err) == 1)
        FUZZ_REQUIRE(n >= 1 && n <= 1000);
    else
        FUZZ_REQUIRE(n == 7);
    if (gguf_get_f32(g, key, 0, 1, &f, &err) == 1)
        FUZZ_REQUIRE(f >= 0 && f <= 1);
    gguf_get_bool(g, key, &b, &err);
    gguf_get_string(g, key, &s, &err);
    FUZZ_REQUIRE(utf8_valid(err.text, strlen(err.text)));
    for (size_t i = 0; i < v->n; i++) {
        if (v->elem_type == GGUF_STRING)
            sink = v->strings[i].len ? v->strings[i].p[v->strings[i].len - 1] : 0;
        else
            sink = gguf_elem_f64(v, i) + (double)gguf_elem_i64(v, i);
    }
    free(key);
}

static void read_tensor(const struct gguf *g, const struct gguf_tensor *t)
{
    char *name = view_dup(t->name);

    FUZZ_REQUIRE(gguf_find_tensor(g, name) == t);
    FUZZ_REQUIRE(t->name.len > 0 && t->name.len < 64 && t->n_dims >= 1 && t->n_dims <= 4);
    FUZZ_REQUIRE(t->dims[0] % t->fmt->block_elems == 0);
    FUZZ_REQUIRE(t->bytes > 0 && t->bytes <= gguf_file_bytes(g));
    FUZZ_REQUIRE(t->offset <= gguf_file_bytes(g) - t->bytes);
    free(name);
}

static int count(void *arg, size_t bytes, struct err *err)
{
    size_t *asked = arg;

    (void)err;
    *asked += bytes;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    char path[40];
    size_t asked = 0;
    const struct gguf_room room = {count, &asked};
    struct gguf *g = NULL;
    struct err err = {0};

    if (fd < 0)
        fd = memfd_create("fuzz", MFD_CLOEXEC);
    FUZZ_REQUIRE(ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (gguf_open_within(path, &room, &g, &err) < 0) {
        FUZZ_REQUIRE(!g && err.text[0] && utf8_valid(err.text, strlen(err.text)));
        return 0;
    }
    /* What is held is in proportion to what was read. */
    FUZZ_REQUIRE(gguf_memory_bytes(g) < 200000 + 40 * size);
    FUZZ_REQUIRE(gguf_memory_bytes(g) <= asked);
    for (size_t i = 0; i < gguf_n_values(g); i++)
        read_value(g, gguf_value_at(g, i));
    for (size_t i = 0; i < gguf_n_tensors(g); i++)
        read_tensor(g, gguf_tensor_at(g, i));
    gguf_close(g);
    return 0;
}
