/* See rig.h. */
#include "tests/unit/memory/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/alloc.h"
#include "tests/support/gguf_writer.h"

struct rig rig;

static float value_of(size_t tensor, size_t i)
{
    return (float)(tensor * 100003 + i);
}

static size_t elements(size_t t)
{
    size_t k = (t - 1) % PER_LAYER;

    if (t == 0)
        return N_ROWS * ROW;
    return k == 0 ? 64 : k < 3 ? DENSE : N_EXPERTS * SLICE;
}

void rig_set_up(void)
{
    struct gguf_writer w = {0};
    struct err err = {0};
    char *path;
    int fd;

    gguf_writer_string(&w, "general.architecture", "none");
    for (size_t t = 0; t < N_TENSORS; t++) {
        uint64_t n = elements(t);
        float *x = xreallocarray(NULL, n, sizeof *x);
        char name[16];

        for (size_t i = 0; i < n; i++)
            x[i] = value_of(t, i);
        snprintf(name, sizeof name, "t%zu", t);
        gguf_writer_tensor(&w, name, 0, 1, &n, x);
        free(x);
    }
    fd = gguf_writer_memfd(&w);
    path = gguf_writer_fd_path(fd);
    gguf_writer_clear(&w);
    ck_assert_msg(gguf_open(path, &rig.file, &err) == 0, "%s", err.text);
    free(path);
    close(fd);
    rig.cpu = cpu_backend_open(1, NULL);
    rig.ledger = ledger_create();
    rig.table_rows = N_ROWS;
}

void rig_tear_down(void)
{
    gguf_close(rig.file);
    cpu_backend_close(&rig.cpu);
    ck_assert_uint_eq(ledger_used(rig.ledger, POOL_RAM), 0);
    ledger_destroy(rig.ledger);
}

struct residency *rig_make(const struct reader_faults *engine)
{
    struct residency *r =
        residency_create(rig.file, rig.ledger, rig.cpu.ops, rig.cpu.be, "model 'test'");

    if (engine)
        residency_set_engine(r, engine);
    for (size_t t = 0; t < N_TENSORS; t++) {
        const struct gguf_tensor *g = gguf_tensor_at(rig.file, t);
        struct extent e = {.part = g->part, .offset = g->offset, .bytes = g->bytes, .layer = -1};

        if (t == 0) {
            e.n_rows = rig.table_rows;
            e.bytes = rig.table_rows * ROW * sizeof(float);
        } else {
            e.layer = (int)((t - 1) / PER_LAYER);
        }
        if (t && (t - 1) % PER_LAYER >= 3)
            e.n_experts = N_EXPERTS;
        snprintf(e.name, sizeof e.name, "%.*s", (int)g->name.len, g->name.p);
        residency_add(r, &e);
    }
    residency_set_batch(r, 16, N_USED);
    return r;
}

int rig_load(struct residency *r, size_t bytes, struct err *err)
{
    struct placement p;

    residency_plan(r, bytes, &p);
    residency_set_placement(r, &p);
    return residency_load(r, NULL, NULL, NULL, err);
}

size_t rig_floor(struct residency *r)
{
    struct placement p;

    residency_floor(r, &p);
    return p.total_bytes;
}

void rig_check_floats(const void *data, size_t tensor, size_t from, size_t n)
{
    size_t i = 0;

    while (i < n && ((const float *)data)[i] == value_of(tensor, from + i))
        i++;
    ck_assert_msg(i == n, "tensor %zu, element %zu", tensor, from + i);
}

static int check_rows(struct residency *r, struct err *err)
{
    const int32_t few[] = {3, 0, 0, 3, 1}, many[] = {7, 199, 0, 7, 42};
    const int32_t *ids = rig.table_rows < N_ROWS ? few : many;
    const void *rows;
    int rc = 0;

    if (!residency_is_by_row(r, 0)) {
        rc = residency_pin(r, 0, &rows, err);
        if (rc >= 0) {
            rig_check_floats(rows, 0, 0, rig.table_rows * ROW);
            residency_unpin(r, 0);
        }
        return rc;
    }
    rc = residency_rows(r, 0, ids, ARRAY_LEN(few), &rows, err);
    for (size_t i = 0; i < ARRAY_LEN(few) && rc >= 0; i++)
        rig_check_floats((const float *)rows + i * ROW, 0, (size_t)ids[i] * ROW, ROW);
    return rc;
}

static int check_dense(struct residency *r, size_t layer, struct err *err)
{
    for (size_t k = 0; k < 3; k++) {
        size_t t = 1 + layer * PER_LAYER + k;
        const void *data;
        int rc = residency_pin(r, (extent_id)t, &data, err);

        if (rc < 0)
            return rc;
        rig_check_floats(data, t, 0, elements(t));
        residency_unpin(r, (extent_id)t);
    }
    return 0;
}

/* rows of two experts each; all that were chosen come, each once. */
static int check_experts(struct residency *r, size_t layer, size_t token, size_t rows,
                         struct err *err)
{
    size_t first = 1 + layer * PER_LAYER + 3;
    const void *(*data)[RESIDENCY_PARTS];
    int32_t ids[16 * N_USED];
    unsigned wanted = 0, came = 0;
    struct residency_choice c = {
        .ids = ids, .stride = N_USED, .rows = rows, .n_used = N_USED, .decode = rows == 1};
    int n;

    for (size_t i = 0; i < rows; i++) {
        ids[i * 2] = (int32_t)((token * 3 + layer + i) % N_EXPERTS);
        ids[i * 2 + 1] = (int32_t)((token * 3 + layer + i + 1 + token % 3) % N_EXPERTS);
        wanted |= 1u << ids[i * 2] | 1u << ids[i * 2 + 1];
    }
    for (unsigned k = 0; k < RESIDENCY_PARTS; k++)
        c.parts[k] = (extent_id)(first + RESIDENCY_PARTS - 1 - k); /* another order than declared */
    if (residency_is_watched(r, (extent_id)first)) {
        residency_note(r, &c);
        return 0;
    }
    ck_assert(residency_is_sliced(r, (extent_id)first));
    residency_experts_begin(r, &c);
    while ((n = residency_experts_next(r, &data, err)) > 0)
        for (size_t e = 0; e < N_EXPERTS; e++) {
            if (!data[e][0])
                continue;
            ck_assert(!(came >> e & 1));
            came |= 1u << e;
            for (unsigned k = 0; k < RESIDENCY_PARTS; k++)
                rig_check_floats(data[e][k], c.parts[k], e * SLICE, SLICE);
        }
    ck_assert(n < 0 || came == wanted);
    return n;
}

/* As the executor walks. */
int rig_walk(struct residency *r, size_t token, size_t rows, struct err *err)
{
    int rc = residency_between(r, err);

    if (rc >= 0)
        rc = check_rows(r, err);
    for (size_t layer = 0; layer < N_LAYERS && rc >= 0; layer++) {
        rc = residency_between(r, err);
        if (rc >= 0)
            rc = check_dense(r, layer, err);
        if (rc >= 0)
            rc = check_experts(r, layer, token, rows, err);
    }
    return rc;
}

void rig_must_walk(struct residency *r, size_t token, size_t rows)
{
    struct err err = {0};

    ck_assert_msg(rig_walk(r, token, rows, &err) >= 0, "%s", err.text);
}
