/* What is not all resident: the ring, experts and rows give the right bytes, in any budget, after any fault. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/alloc.h"
#include "daemon/memory/guard.h"
#include "daemon/memory/residency.h"
#include "daemon/memory/stream.h"
#include "tests/support/cpu_backend.h"
#include "tests/support/faulty.h"
#include "tests/support/gguf_writer.h"

TCase *tcase_memory_streaming(void);

#define N_LAYERS  6
#define N_EXPERTS 5
#define N_USED    2
#define N_ROWS    200
#define FEW_ROWS  4               /* of a table that slots are more than 128 times of */
#define DENSE     ((size_t)20000) /* elements; 80 kB: may stream */
#define SLICE     ((size_t)3000)
#define ROW       ((size_t)500)
#define PER_LAYER 6 /* norm, two dense ones, gate, up, down */
#define N_TENSORS (1 + N_LAYERS * PER_LAYER)

static struct cpu_backend cpu;
static struct ledger *ledger;
static struct gguf *file;
static size_t table_rows;

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

static void set_up(void)
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
    ck_assert_msg(gguf_open(path, &file, &err) == 0, "%s", err.text);
    free(path);
    close(fd);
    cpu = cpu_backend_open(1, NULL);
    ledger = ledger_create();
    table_rows = N_ROWS;
}

static void tear_down(void)
{
    gguf_close(file);
    cpu_backend_close(&cpu);
    ck_assert_uint_eq(ledger_used(ledger, POOL_RAM), 0);
    ledger_destroy(ledger);
}

/* Ids are the tensors' numbers. */
static struct residency *make(const struct reader_faults *engine)
{
    struct residency *r = residency_create(file, ledger, cpu.ops, cpu.be, "test");

    if (engine)
        residency_set_engine(r, engine);
    for (size_t t = 0; t < N_TENSORS; t++) {
        const struct gguf_tensor *g = gguf_tensor_at(file, t);
        struct extent e = {.part = g->part, .offset = g->offset, .bytes = g->bytes, .layer = -1};

        if (t == 0) {
            e.n_rows = table_rows;
            e.bytes = table_rows * ROW * sizeof(float);
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

static int load(struct residency *r, size_t bytes, struct err *err)
{
    struct placement p;

    residency_plan(r, bytes, &p);
    residency_set_placement(r, &p);
    return residency_load(r, NULL, NULL, NULL, err);
}

static size_t floor_of(struct residency *r)
{
    struct placement p;

    residency_floor(r, &p);
    return p.total_bytes;
}

static void check_floats(const void *data, size_t tensor, size_t from, size_t n)
{
    size_t i = 0;

    while (i < n && ((const float *)data)[i] == value_of(tensor, from + i))
        i++;
    ck_assert_msg(i == n, "tensor %zu, element %zu", tensor, from + i);
}

static int check_rows(struct residency *r, struct err *err)
{
    const int32_t few[] = {3, 0, 0, 3, 1}, many[] = {7, 199, 0, 7, 42};
    const int32_t *ids = table_rows < N_ROWS ? few : many;
    const void *rows;
    int rc = 0;

    if (!residency_is_by_row(r, 0)) {
        rc = residency_pin(r, 0, &rows, err);
        if (rc >= 0) {
            check_floats(rows, 0, 0, table_rows * ROW);
            residency_unpin(r, 0);
        }
        return rc;
    }
    rc = residency_rows(r, 0, ids, ARRAY_LEN(few), &rows, err);
    for (size_t i = 0; i < ARRAY_LEN(few) && rc >= 0; i++)
        check_floats((const float *)rows + i * ROW, 0, (size_t)ids[i] * ROW, ROW);
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
        check_floats(data, t, 0, elements(t));
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
                check_floats(data[e][k], c.parts[k], e * SLICE, SLICE);
        }
    ck_assert(n < 0 || came == wanted);
    return n;
}

/* As the executor walks. */
static int walk(struct residency *r, size_t token, size_t rows, struct err *err)
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

static void must_walk(struct residency *r, size_t token, size_t rows)
{
    struct err err = {0};

    ck_assert_msg(walk(r, token, rows, &err) >= 0, "%s", err.text);
}

START_TEST(every_budget_from_the_floor_up_gives_the_right_bytes_and_is_kept)
{
    struct residency *r;
    size_t floor, all;
    struct placement p;
    struct err err = {0};

    table_rows = _i ? FEW_ROWS : N_ROWS;
    r = make(NULL);
    floor = floor_of(r);
    residency_plan(r, SIZE_MAX, &p);
    all = p.total_bytes;
    ck_assert_uint_lt(floor, all);
    residency_destroy(r);
    for (size_t step = 0; step <= 12; step++) {
        size_t bytes = floor + (all - floor) * step / 12;

        r = make(NULL);
        ck_assert_msg(load(r, bytes, &err) == 0, "%s", err.text);
        ck_assert_uint_le(residency_held_bytes(r), bytes);
        ck_assert_uint_eq(ledger_used(ledger, POOL_RAM), residency_held_bytes(r));
        for (size_t token = 0; token < 8; token++)
            must_walk(r, token, token == 3 ? 16 : 1);
        ck_assert_uint_eq(ledger_used(ledger, POOL_RAM), residency_held_bytes(r));
        residency_destroy(r);
    }
}
END_TEST

START_TEST(a_budget_may_be_cut_and_raised_between_two_layers)
{
    struct residency *r;
    struct placement p;
    struct err err = {0};
    size_t floor, all;

    table_rows = _i ? FEW_ROWS : N_ROWS;
    r = make(NULL);
    ck_assert_int_eq(residency_load(r, NULL, NULL, NULL, &err), 0);
    floor = residency_floor_bytes(r);
    residency_plan(r, SIZE_MAX, &p);
    all = p.total_bytes;
    for (size_t i = 0; i < 40; i++) {
        size_t bytes = i % 5 == 0 ? floor : floor + (all * 2 - floor) * (i * 7 % 11) / 10;

        ck_assert_msg(residency_resize(r, bytes, &err) == 0, "%s", err.text);
        ck_assert_uint_le(residency_held_bytes(r), bytes);
        must_walk(r, i, i % 7 == 3 ? 12 : 1);
        ck_assert_uint_le(residency_held_bytes(r), bytes);
        ck_assert_uint_eq(ledger_used(ledger, POOL_RAM), residency_held_bytes(r));
    }
    ck_assert_int_eq(residency_resize(r, floor - 1, &err), -ERR_NOMEM);
    must_walk(r, 99, 1);
    residency_destroy(r);
}
END_TEST

START_TEST(a_budget_that_is_cut_while_weights_come_home_is_kept_wherever_they_are)
{
    struct residency *r = make(NULL);
    struct placement p;
    struct err err = {0};
    size_t floor = floor_of(r), all;
    bool halfway = false;

    residency_plan(r, SIZE_MAX, &p);
    all = p.total_bytes;
    residency_destroy(r);
    for (long n = 0; n < 40; n++) {
        size_t now;

        r = make(NULL);
        ck_assert_int_eq(load(r, floor, &err), 0);
        must_walk(r, 0, 1);
        floor = residency_floor_bytes(r);
        ck_assert_int_eq(residency_resize(r, all, &err), 0);
        ledger_refuse_after(ledger, n); /* the weights that come home stop here */
        residency_between(r, &err);
        ledger_refuse_after(ledger, -1);
        now = residency_held_bytes(r);
        halfway |= now > floor + (64 << 10);
        for (size_t step = 64; step-- > 0;) {
            size_t bytes = floor + (now - floor) * step / 64;

            ck_assert_msg(residency_resize(r, bytes, &err) == 0, "%s", err.text);
            ck_assert_uint_le(residency_held_bytes(r), bytes);
            ck_assert_uint_eq(ledger_used(ledger, POOL_RAM), residency_held_bytes(r));
        }
        must_walk(r, 1, 1);
        residency_destroy(r);
    }
    ck_assert(halfway);
}
END_TEST

/* Nothing dense streams after it, whatever the budget was before. */
static void raised(struct residency *r, size_t bytes)
{
    struct residency_stats s;
    struct err err = {0};

    ck_assert_msg(residency_resize(r, bytes, &err) == 0, "%s", err.text);
    for (size_t token = 0; token < 40; token++) {
        must_walk(r, token, 1);
        ck_assert_uint_le(residency_held_bytes(r), ledger_budget(ledger, POOL_RAM));
    }
    residency_stats(r, &s);
    ck_assert_uint_eq(s.placement.n_dropped, 0);
    ck_assert_uint_le(s.placement.total_bytes, bytes);
    ck_assert_uint_eq(ledger_used(ledger, POOL_RAM), residency_held_bytes(r));
}

START_TEST(weights_come_home_also_where_the_last_have_no_room_beside_the_ring)
{
    struct faulty f = {.fail_at = -1};
    struct reader_faults engine = {.pread = faulty_pread, .arg = &f};
    struct residency *r = make(&engine);
    struct residency_stats s;
    struct placement p, least;
    struct err err = {0};
    int failed = 0;
    size_t floor = floor_of(r), bytes, staging = stream_staging_bytes(DENSE * sizeof(float));

    residency_plan(r, SIZE_MAX, &p);
    for (bytes = p.total_bytes; residency_plan(r, bytes, &least), !least.n_dropped; bytes -= 4096)
        continue;
    bytes += 4096; /* the least that has all dense weights at home */
    ck_assert_int_eq(ledger_set_budget(ledger, POOL_RAM, bytes + staging, &err), 0);
    ck_assert_int_eq(load(r, floor, &err), 0);
    must_walk(r, 0, 1);
    raised(r, bytes);
    /* a read that fails on the way leaves a ring and what streamed before; a later budget tries again */
    for (long k = 0; k < 16; k++) {
        ck_assert_int_eq(residency_resize(r, residency_floor_bytes(r), &err), 0);
        must_walk(r, 0, 1);
        ck_assert_int_eq(residency_resize(r, bytes, &err), 0);
        f.errnum = EIO;
        f.fail_at = f.n_reads + k;
        residency_between(r, &err);
        f.fail_at = -1;
        residency_stats(r, &s);
        failed += s.placement.n_dropped > 0;
        must_walk(r, 1, 1);
        ck_assert_uint_eq(ledger_used(ledger, POOL_RAM), residency_held_bytes(r));
        raised(r, bytes);
    }
    ck_assert_int_ge(failed, 8);
    residency_destroy(r);
}
END_TEST

#define MANY_LAYERS 40
#define MANY_EACH   2

/* Of more layers than the file has: the same two weights in each. */
static struct residency *make_long(void)
{
    struct residency *r = residency_create(file, ledger, cpu.ops, cpu.be, "test");

    for (size_t i = 0; i < (size_t)MANY_LAYERS * MANY_EACH; i++) {
        const struct gguf_tensor *g = gguf_tensor_at(file, 2 + i % MANY_EACH);
        struct extent e = {
            .part = g->part, .offset = g->offset, .bytes = g->bytes, .layer = (int)(i / MANY_EACH)};

        snprintf(e.name, sizeof e.name, "w%zu", i);
        residency_add(r, &e);
    }
    return r;
}

static void walk_long(struct residency *r)
{
    struct err err = {0};
    const void *data;

    for (size_t i = 0; i < (size_t)MANY_LAYERS * MANY_EACH; i++) {
        if (i % MANY_EACH == 0)
            ck_assert_msg(residency_between(r, &err) == 0, "%s", err.text);
        ck_assert_msg(residency_pin(r, (extent_id)i, &data, &err) == 0, "%s", err.text);
        check_floats(data, 2 + i % MANY_EACH, 0, DENSE);
        residency_unpin(r, (extent_id)i);
    }
}

START_TEST(a_ring_is_as_deep_again_as_a_load_would_make_it)
{
    struct residency *r = make_long();
    struct residency_stats s;
    struct placement p, deep[2] = {0}; /* with as many drops as at the floor, and with the fewest */
    struct err err = {0};
    size_t floor = floor_of(r);

    residency_plan(r, SIZE_MAX, &p);
    for (size_t bytes = floor; bytes < p.total_bytes; bytes += 4096) {
        struct placement at;

        residency_plan(r, bytes, &at);
        if (at.ring_depth > PLACEMENT_DEPTH_MIN)
            deep[deep[0].ring_depth > 0] = at;
    }
    ck_assert_int_eq(load(r, floor, &err), 0);
    residency_stats(r, &s);
    ck_assert_uint_lt(deep[1].n_dropped, s.placement.n_dropped);
    for (int round = 0; round < 6; round++) {
        const struct placement *want = &deep[round % 2];

        ck_assert_int_eq(residency_resize(r, want->total_bytes, &err), 0);
        for (int token = 0; token < 10; token++)
            walk_long(r);
        residency_stats(r, &s);
        ck_assert_uint_eq(s.placement.n_dropped, want->n_dropped);
        ck_assert_uint_eq(s.placement.ring_depth, PLACEMENT_DEPTH);
        ck_assert_uint_le(residency_held_bytes(r), want->total_bytes);
        ck_assert_uint_eq(ledger_used(ledger, POOL_RAM), residency_held_bytes(r));
        ck_assert_int_eq(residency_resize(r, floor, &err), 0);
        walk_long(r);
    }
    residency_destroy(r);
}
END_TEST

START_TEST(a_read_that_fails_names_its_tensor_fails_once_and_the_next_token_is_right)
{
    struct faulty f = {.fail_at = -1};
    struct reader_faults engine = {.pread = faulty_pread, .arg = &f};
    struct residency *r = make(&engine);
    struct err err = {0};
    long first, last;

    ck_assert_int_eq(load(r, floor_of(r), &err), 0);
    first = f.n_reads;
    must_walk(r, 0, 1);
    must_walk(r, 1, 9);
    last = f.n_reads;
    residency_destroy(r);
    ck_assert_int_gt(last, first + N_LAYERS);
    for (long n = first; n < last; n++) {
        f = (struct faulty){.fail_at = n, .errnum = n % 2 ? EIO : 0};
        r = make(&engine);
        ck_assert_int_eq(load(r, floor_of(r), &err), 0);
        for (size_t token = 0, failed = 0; token < 4; token++) {
            err_clear(&err);
            if (walk(r, token, token == 1 ? 9 : 1, &err) >= 0)
                continue;
            ck_assert_int_eq(err.kind, ERR_IO);
            ck_assert_int_eq(err.param[0], 't');
            ck_assert_uint_eq(failed++, 0);
        }
        residency_destroy(r);
        ck_assert_uint_eq(ledger_used(ledger, POOL_RAM), 0);
    }
}
END_TEST

START_TEST(a_table_that_costs_few_slots_stays_until_it_does_not)
{
    struct residency *r;
    struct placement p;
    struct err err = {0};
    size_t all;

    table_rows = FEW_ROWS;
    r = make(NULL);
    residency_plan(r, SIZE_MAX, &p);
    all = p.total_bytes;
    ck_assert_int_eq(load(r, all - p.slots_bytes / 32, &err), 0);
    ck_assert(!residency_is_by_row(r, 0));
    must_walk(r, 0, 1);
    ck_assert_int_eq(residency_resize(r, all - p.slots_bytes / 24, &err), 0);
    ck_assert(!residency_is_by_row(r, 0));
    must_walk(r, 1, 1);
    ck_assert_int_eq(residency_resize(r, all - p.slots_bytes, &err), 0);
    ck_assert(residency_is_by_row(r, 0));
    must_walk(r, 2, 1);
    ck_assert_int_eq(residency_resize(r, all - p.slots_bytes / 32, &err), 0);
    ck_assert(residency_is_by_row(r, 0)); /* what is gone does not come back */
    must_walk(r, 3, 1);
    ck_assert_uint_le(residency_held_bytes(r), all - p.slots_bytes / 32);
    residency_destroy(r);
}
END_TEST

START_TEST(a_row_that_comes_again_is_not_read_again)
{
    struct faulty f = {.fail_at = -1};
    struct reader_faults engine = {.pread = faulty_pread, .arg = &f};
    struct residency *r = make(&engine);
    const void *row;
    struct err err = {0};
    long before;

    ck_assert_int_eq(load(r, floor_of(r), &err), 0);
    ck_assert(residency_is_by_row(r, 0));
    for (int round = 0; round < 3; round++)
        for (int32_t id = 0; id < N_ROWS; id += 3)
            for (int again = 0; again < 3; again++) {
                before = f.n_reads;
                ck_assert_int_eq(residency_rows(r, 0, &id, 1, &row, &err), 0);
                check_floats(row, 0, (size_t)id * ROW, ROW);
                if (again)
                    ck_assert_int_eq(f.n_reads, before);
            }
    /* what has failed is not kept */
    for (int32_t id = 1; id < N_ROWS; id += 3) {
        f.fail_at = f.n_reads;
        f.errnum = EIO;
        ck_assert_int_eq(residency_rows(r, 0, &id, 1, &row, &err), -ERR_IO);
        f.fail_at = -1;
        ck_assert_int_eq(residency_rows(r, 0, &id, 1, &row, &err), 0);
        check_floats(row, 0, (size_t)id * ROW, ROW);
    }
    residency_destroy(r);
}
END_TEST

START_TEST(every_charge_refused_in_turn_leaves_nothing_and_a_later_load_works)
{
    struct residency *r = make(NULL);
    size_t floor = floor_of(r), n = 0;
    struct err err = {0};

    for (;; n++) {
        int rc;

        ledger_refuse_after(ledger, (long)n);
        rc = load(r, floor + floor / 3, &err);
        ledger_refuse_after(ledger, -1);
        if (rc == 0)
            break;
        ck_assert_int_eq(rc, -ERR_NOMEM);
        ck_assert_uint_eq(ledger_used(ledger, POOL_RAM), 0);
    }
    ck_assert_uint_ge(n, 3);
    must_walk(r, 0, 1);
    residency_destroy(r);
}
END_TEST

START_TEST(a_change_of_budget_that_is_refused_its_charges_fails_one_token_at_most)
{
    for (long n = 0; n < 6; n++) {
        struct residency *r = make(NULL);
        size_t floor, all;
        struct err err = {0};

        ck_assert_int_eq(residency_load(r, NULL, NULL, NULL, &err), 0);
        all = residency_held_bytes(r);
        floor = residency_floor_bytes(r);
        ledger_refuse_after(ledger, n);
        residency_resize(r, floor, &err);
        residency_resize(r, (floor + all) / 2, &err);
        walk(r, 0, 1, &err);
        ledger_refuse_after(ledger, -1);
        must_walk(r, 1, 1);
        ck_assert_uint_eq(ledger_used(ledger, POOL_RAM), residency_held_bytes(r));
        residency_destroy(r);
        ck_assert_uint_eq(ledger_used(ledger, POOL_RAM), 0);
    }
}
END_TEST

START_TEST(prefill_does_not_take_the_slots_of_what_decode_uses)
{
    struct residency *r = make(NULL);
    struct residency_stats a, b;
    struct placement p;
    struct err err = {0};

    /* room for all experts but a few, dense weights resident */
    residency_plan(r, SIZE_MAX, &p);
    ck_assert_int_eq(load(r, p.total_bytes - p.slots_bytes / 3, &err), 0);
    for (size_t i = 0; i < 6; i++)
        must_walk(r, 0, 1); /* the same two experts of every layer */
    must_walk(r, 1, 16);    /* all experts, once */
    residency_stats(r, &a);
    must_walk(r, 0, 1);
    residency_stats(r, &b);
    ck_assert_uint_eq(b.uses - a.uses, N_LAYERS * N_USED);
    ck_assert_uint_eq(b.hits - a.hits, N_LAYERS * N_USED);
    residency_destroy(r);
}
END_TEST

START_TEST(what_is_chosen_while_all_is_there_is_noted_and_a_cut_keeps_it)
{
    struct residency *r = make(NULL);
    struct curve_point points[CURVE_POINTS];
    struct curve_profile profile;
    struct residency_stats s;
    struct err err = {0};
    bool resident;
    size_t all;

    ck_assert_int_eq(residency_load(r, NULL, NULL, NULL, &err), 0);
    ck_assert_int_eq(residency_curve(r, points), 0);
    ck_assert(!residency_curve_profile(r, &profile));
    must_walk(r, 1, 16);
    for (size_t i = 0; i < 2 * CURVE_PROFILE_TOKENS; i++)
        must_walk(r, 0, 1); /* experts i and i + 1 of layer i, round and round */
    ck_assert_int_eq(residency_curve(r, points), CURVE_POINTS);
    ck_assert_double_gt(points[0].hit_rate, 0.9);
    ck_assert(residency_curve_profile(r, &profile));
    ck_assert_double_gt(curve_profile_hits(&profile, N_USED), 0.9);
    curve_profile_clear(&profile);
    ck_assert_double_gt(residency_heat(r, 3, 4, &resident), residency_heat(r, 3, 0, &resident));
    ck_assert(resident);
    residency_stats(r, &s);
    ck_assert_uint_eq(s.uses, 0); /* of the cache, which there is none of */
    all = residency_held_bytes(r);
    ck_assert_int_eq(residency_resize(r, all - s.placement.slots_bytes / 3, &err), 0);
    must_walk(r, 0, 1);
    residency_stats(r, &s);
    ck_assert_uint_eq(s.uses, N_LAYERS * N_USED);
    ck_assert_uint_eq(s.hits, N_LAYERS * N_USED);
    residency_destroy(r);
}
END_TEST

/* Reads of the gates of layer 0, in the order in which the drive was asked. */
struct gates {
    uint64_t offset, bytes;
    uint64_t seen[4 * N_EXPERTS];
    size_t n;
};

static ssize_t watch_gates(void *arg, int fd, void *buf, size_t n, off_t offset)
{
    struct gates *g = arg;
    uint64_t at = (uint64_t)offset;

    /* a slice's read begins at or, by whole blocks, a little before it */
    if (at + n > g->offset && at < g->offset + g->bytes && g->n < ARRAY_LEN(g->seen))
        g->seen[g->n++] = MAX(at, g->offset);
    return pread(fd, buf, n, offset);
}

START_TEST(a_chunk_reads_each_expert_that_it_wants_once_in_the_order_of_the_file)
{
    const struct gguf_tensor *t = gguf_tensor_at(file, 4); /* the gates of layer 0 */
    struct gates g = {.offset = t->offset, .bytes = t->bytes};
    struct reader_faults engine = {.pread = watch_gates, .arg = &g, .no_direct = true};
    struct residency *r = make(&engine);
    struct residency_layer l;
    struct err err = {0};

    ck_assert_int_eq(load(r, floor_of(r), &err), 0);
    g.n = 0;
    must_walk(r, 0, 16); /* all experts of every layer */
    ck_assert_uint_eq(g.n, N_EXPERTS);
    for (size_t i = 0; i < g.n; i++)
        ck_assert_uint_eq(g.seen[i], g.offset + i * (g.bytes / N_EXPERTS));
    residency_layer(r, 0, &l);
    ck_assert_uint_eq(l.wanted_bytes, N_EXPERTS * RESIDENCY_PARTS * SLICE * sizeof(float));
    ck_assert_uint_eq(l.read_bytes, l.wanted_bytes);
    g.n = 0;
    must_walk(r, 0, 2); /* the union of two rows: experts 0, 1 and 2 */
    ck_assert_uint_eq(g.n, 3);
    for (size_t i = 0; i < g.n; i++)
        ck_assert_uint_eq(g.seen[i], g.offset + i * (g.bytes / N_EXPERTS));
    residency_destroy(r);
}
END_TEST

/* Of layer 0: a tensor of gates and ups, one after the other in each slice, and the downs. */
static struct residency *make_fused(void)
{
    struct residency *r = residency_create(file, ledger, cpu.ops, cpu.be, "test");

    for (size_t k = 0; k < 2; k++) {
        const struct gguf_tensor *g = gguf_tensor_at(file, 4 + k);
        struct extent e = {.part = g->part,
                           .offset = g->offset,
                           .bytes = g->bytes,
                           .layer = 0,
                           .n_experts = N_EXPERTS};

        snprintf(e.name, sizeof e.name, "%.*s", (int)g->name.len, g->name.p);
        residency_add(r, &e);
    }
    residency_set_batch(r, 16, N_USED);
    return r;
}

/* All experts; ups begin at `up` floats of the first extent's slices. */
static void check_fused(struct residency *r, size_t up)
{
    int32_t ids[N_EXPERTS];
    const void *(*data)[RESIDENCY_PARTS];
    struct residency_choice c = {.parts = {0, 0, 1},
                                 .offsets = {0, up * sizeof(float), 0},
                                 .ids = ids,
                                 .stride = 1,
                                 .rows = N_EXPERTS,
                                 .n_used = 1};
    struct err err = {0};
    size_t came = 0;
    int n;

    for (int e = 0; e < N_EXPERTS; e++)
        ids[e] = N_EXPERTS - 1 - e;
    residency_experts_begin(r, &c);
    while ((n = residency_experts_next(r, &data, &err)) > 0)
        for (size_t e = 0; e < N_EXPERTS; e++) {
            if (!data[e][0])
                continue;
            came++;
            check_floats(data[e][0], 4, e * SLICE, SLICE - up);
            check_floats(data[e][1], 4, e * SLICE + up, SLICE - up);
            check_floats(data[e][2], 5, e * SLICE, SLICE);
        }
    ck_assert_msg(n == 0, "%s", err.text);
    ck_assert_uint_eq(came, N_EXPERTS);
}

START_TEST(two_matrices_of_one_tensor_are_one_read_and_each_has_its_place)
{
    static const size_t ups[] = {0, SLICE / 2}; /* the same matrix twice; one behind the other */

    for (size_t i = 0; i < ARRAY_LEN(ups); i++) {
        struct residency *r = make_fused();
        struct residency_layer l;
        struct placement p;
        struct err err = {0};

        residency_plan(r, SIZE_MAX, &p);
        ck_assert_int_eq(load(r, p.total_bytes - p.slots_bytes / 2, &err), 0);
        ck_assert(residency_is_sliced(r, 0));
        check_fused(r, ups[i]);
        residency_layer(r, 0, &l);
        ck_assert_uint_eq(l.wanted_bytes, N_EXPERTS * 2 * SLICE * sizeof(float));
        ck_assert_uint_ge(l.read_bytes, l.wanted_bytes);
        ck_assert_uint_le(l.read_bytes, l.wanted_bytes + N_EXPERTS * 2 * 2 * 4096);
        check_fused(r, ups[i]); /* some are there now */
        residency_destroy(r);
    }
}
END_TEST

/* A drive that gives nothing of the experts until it is let. */
struct gate {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    bool shut;
};

static ssize_t read_through_gate(void *arg, int fd, void *buf, size_t n, off_t offset)
{
    struct gate *g = arg;

    pthread_mutex_lock(&g->lock);
    while (g->shut)
        pthread_cond_wait(&g->opened, &g->lock);
    pthread_mutex_unlock(&g->lock);
    return pread(fd, buf, n, offset);
}

static void set_gate(struct gate *g, bool shut)
{
    pthread_mutex_lock(&g->lock);
    g->shut = shut;
    pthread_cond_broadcast(&g->opened);
    pthread_mutex_unlock(&g->lock);
}

START_TEST(hits_are_given_while_the_misses_of_the_same_choice_are_being_read)
{
    struct gate g = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    struct reader_faults engine = {.pread = read_through_gate, .arg = &g};
    struct residency *r = make(&engine);
    const void *(*data)[RESIDENCY_PARTS];
    int32_t ids[] = {1, 0};
    struct residency_choice c = {.parts = {4, 5, 6},
                                 .ids = ids,
                                 .stride = N_USED,
                                 .rows = 1,
                                 .n_used = N_USED,
                                 .decode = true};
    struct residency_layer l, before;
    struct placement p;
    struct err err = {0};

    residency_plan(r, SIZE_MAX, &p);
    ck_assert_int_eq(load(r, p.total_bytes - p.slots_bytes / 3, &err), 0);
    residency_experts_begin(r, &c);
    while (residency_experts_next(r, &data, &err) > 0)
        continue;
    ids[0] = 3; /* missing; 0 is there */
    residency_layer(r, 0, &before);
    set_gate(&g, true);
    residency_experts_begin(r, &c);
    ck_assert_int_eq(residency_experts_next(r, &data, &err), 1);
    ck_assert_ptr_nonnull(data[0][0]);
    ck_assert_ptr_null(data[3][0]);
    residency_layer(r, 0, &l);
    ck_assert_uint_eq(l.wait_us, before.wait_us); /* nobody waited for it */
    set_gate(&g, false);
    ck_assert_int_eq(residency_experts_next(r, &data, &err), 1);
    ck_assert_ptr_null(data[0][0]);
    check_floats(data[3][0], 4, 3 * SLICE, SLICE);
    ck_assert_int_eq(residency_experts_next(r, &data, &err), 0);
    residency_layer(r, 0, &l);
    ck_assert_uint_eq(l.missed[0], before.missed[0]);
    ck_assert_uint_eq(l.missed[1], before.missed[1] + 1);
    ck_assert_uint_eq(before.missed[0] + before.missed[1] + before.missed[2], 1);
    residency_destroy(r);
}
END_TEST

/* A machine on which every slot beyond some costs a fault and time. */
struct machine {
    struct residency *r;
    size_t real; /* slots that it has memory for; 0: any number */
    int64_t us;
    uint64_t faults;
};

static void probe_machine(void *arg, int64_t *ret_us, uint64_t *ret_major_faults)
{
    struct machine *m = arg;
    struct residency_stats s;

    residency_stats(m->r, &s);
    m->us += 1000;
    if (m->real && s.placement.n_slots > m->real) {
        m->us += 5000;
        m->faults += 10;
    }
    *ret_us = m->us;
    *ret_major_faults = m->faults;
}

START_TEST(more_slots_that_make_tokens_slower_are_given_back_and_tried_again_later)
{
    struct machine m = {.r = make(NULL)};
    struct residency_stats s;
    struct placement p;
    struct err err = {0};
    size_t most, little;

    residency_set_probe(m.r, probe_machine, &m);
    residency_plan(m.r, SIZE_MAX, &p);
    most = p.total_bytes - p.slots_bytes / N_EXPERTS;
    little = p.total_bytes - p.slots_bytes * 4 / N_EXPERTS;
    ck_assert_int_eq(load(m.r, little, &err), 0);
    for (size_t i = 0; i < GUARD_WINDOW; i++)
        must_walk(m.r, i, 1);
    residency_stats(m.r, &s);
    m.real = s.placement.n_slots;
    ck_assert_int_eq(residency_resize(m.r, most, &err), 0);
    residency_stats(m.r, &s);
    ck_assert_uint_gt(s.placement.n_slots, m.real + GUARD_STEP_LEAST);
    for (size_t i = 0; i < 2 * GUARD_WINDOW + 1; i++)
        must_walk(m.r, i, 1);
    residency_stats(m.r, &s);
    ck_assert_uint_eq(s.slots_cap, m.real);
    ck_assert_uint_eq(s.placement.n_slots, m.real);
    ck_assert_uint_eq(ledger_used(ledger, POOL_RAM), residency_held_bytes(m.r));
    ck_assert_int_eq(residency_resize(m.r, most, &err), 0); /* the cap holds */
    residency_stats(m.r, &s);
    ck_assert_uint_eq(s.placement.n_slots, m.real);
    m.real = 0;
    for (size_t i = 0; i < GUARD_REST + 1; i++)
        must_walk(m.r, i, 1);
    residency_stats(m.r, &s);
    ck_assert_uint_eq(s.slots_cap, 0);
    ck_assert_uint_le(residency_held_bytes(m.r), most);
    ck_assert_uint_gt(s.placement.n_slots, N_LAYERS * 3);
    residency_destroy(m.r);
}
END_TEST

TCase *tcase_memory_streaming(void)
{
    TCase *tc = tcase_create("streaming");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, every_budget_from_the_floor_up_gives_the_right_bytes_and_is_kept, 0, 2);
    tcase_add_loop_test(tc, a_budget_may_be_cut_and_raised_between_two_layers, 0, 2);
    tcase_add_test(tc, a_budget_that_is_cut_while_weights_come_home_is_kept_wherever_they_are);
    tcase_add_test(tc, weights_come_home_also_where_the_last_have_no_room_beside_the_ring);
    tcase_add_test(tc, a_ring_is_as_deep_again_as_a_load_would_make_it);
    tcase_add_test(tc, a_read_that_fails_names_its_tensor_fails_once_and_the_next_token_is_right);
    tcase_add_test(tc, a_table_that_costs_few_slots_stays_until_it_does_not);
    tcase_add_test(tc, a_row_that_comes_again_is_not_read_again);
    tcase_add_test(tc, every_charge_refused_in_turn_leaves_nothing_and_a_later_load_works);
    tcase_add_test(tc, a_change_of_budget_that_is_refused_its_charges_fails_one_token_at_most);
    tcase_add_test(tc, what_is_chosen_while_all_is_there_is_noted_and_a_cut_keeps_it);
    tcase_add_test(tc, prefill_does_not_take_the_slots_of_what_decode_uses);
    tcase_add_test(tc, hits_are_given_while_the_misses_of_the_same_choice_are_being_read);
    tcase_add_test(tc, more_slots_that_make_tokens_slower_are_given_back_and_tried_again_later);
    tcase_add_test(tc, a_chunk_reads_each_expert_that_it_wants_once_in_the_order_of_the_file);
    tcase_add_test(tc, two_matrices_of_one_tensor_are_one_read_and_each_has_its_place);
    return tc;
}
