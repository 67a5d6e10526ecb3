/* See tiny.h. */
#include "tests/unit/model/tiny.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/alloc.h"

int tiny_open(struct gguf_writer *w, struct model **ret_model, struct err *err)
{
    int fd = gguf_writer_memfd(w);
    char *path = gguf_writer_fd_path(fd);
    int r = model_open(path, ret_model, err);

    free(path);
    close(fd);
    gguf_writer_clear(w);
    return r;
}

struct model *tiny_must_open(const struct tiny_model *o)
{
    struct gguf_writer w = {0};
    struct model *m = NULL;
    struct err err = {0};

    tiny_model_build(o, &w);
    ck_assert_msg(tiny_open(&w, &m, &err) == 0, "%s", err.text);
    return m;
}

struct tiny_engine tiny_load(const struct tiny_model *o, const struct model_options *mo,
                             unsigned threads, const char *tier)
{
    struct tiny_engine e = {.cpu = cpu_backend_open(threads, tier), .ledger = ledger_create()};
    struct err err = {0};

    e.m = tiny_must_open(o);
    ck_assert_msg(model_load(e.m, mo, e.ledger, e.cpu.ops, e.cpu.be, NULL, NULL, NULL, &err) == 0,
                  "%s", err.text);
    return e;
}

void tiny_close(struct tiny_engine *e)
{
    model_close(e->m);
    cpu_backend_close(&e->cpu);
    ck_assert_uint_eq(ledger_used(e->ledger, POOL_RAM), 0);
    ledger_destroy(e->ledger);
}

float *tiny_logits(struct tiny_engine *e, const int32_t *ids, size_t n, size_t step)
{
    float *out = xreallocarray(NULL, n * TINY_N_VOCAB, sizeof *out);
    int32_t *rows = xreallocarray(NULL, n, sizeof *rows);
    struct err err = {0};

    for (size_t i = 0; i < n; i++)
        rows[i] = (int32_t)i;
    sequence_truncate(model_sequence(e->m), 0);
    for (size_t at = 0; at < n; at += step) {
        size_t k = MIN(step, n - at);
        const float *logits;

        ck_assert_msg(model_eval(e->m, ids + at, k, rows, k, NULL, &logits, &err) == 0, "%s",
                      err.text);
        memcpy(out + at * TINY_N_VOCAB, logits, k * TINY_N_VOCAB * sizeof *out);
    }
    free(rows);
    return out;
}

void tiny_ids(int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ids[i] = (int32_t)((i * 37 + 11) % TINY_N_VOCAB);
}
