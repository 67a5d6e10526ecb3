/* A budget that changes while a model runs: kept at every step, as good in the end as a load, right bytes all the while. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/memory/stream.h"
#include "tests/support/faulty.h"
#include "tests/unit/memory/rig.h"

TCase *tcase_memory_resize(void);

START_TEST(a_budget_may_be_cut_and_raised_between_two_layers)
{
    struct residency *r;
    struct placement p;
    struct err err = {0};
    size_t floor, all;

    rig.table_rows = _i ? FEW_ROWS : N_ROWS;
    r = rig_make(NULL);
    ck_assert_int_eq(residency_load(r, NULL, NULL, NULL, &err), 0);
    floor = residency_floor_bytes(r);
    residency_plan(r, SIZE_MAX, &p);
    all = p.total_bytes;
    for (size_t i = 0; i < 40; i++) {
        size_t bytes = i % 5 == 0 ? floor : floor + (all * 2 - floor) * (i * 7 % 11) / 10;

        ck_assert_msg(residency_resize(r, bytes, &err) == 0, "%s", err.text);
        ck_assert_uint_le(residency_held_bytes(r), bytes);
        rig_must_walk(r, i, i % 7 == 3 ? 12 : 1);
        ck_assert_uint_le(residency_held_bytes(r), bytes);
        ck_assert_uint_eq(ledger_used(rig.ledger, POOL_RAM), residency_held_bytes(r));
    }
    ck_assert_int_eq(residency_resize(r, floor - 1, &err), -ERR_NOMEM);
    rig_must_walk(r, 99, 1);
    residency_destroy(r);
}
END_TEST

START_TEST(a_budget_that_is_cut_while_weights_come_home_is_kept_wherever_they_are)
{
    struct residency *r = rig_make(NULL);
    struct placement p;
    struct err err = {0};
    size_t floor = rig_floor(r), all;
    bool halfway = false;

    residency_plan(r, SIZE_MAX, &p);
    all = p.total_bytes;
    residency_destroy(r);
    for (long n = 0; n < 40; n++) {
        size_t now;

        r = rig_make(NULL);
        ck_assert_int_eq(rig_load(r, floor, &err), 0);
        rig_must_walk(r, 0, 1);
        floor = residency_floor_bytes(r);
        ck_assert_int_eq(residency_resize(r, all, &err), 0);
        ledger_refuse_after(rig.ledger, n); /* the weights that come home stop here */
        residency_between(r, &err);
        ledger_refuse_after(rig.ledger, -1);
        now = residency_held_bytes(r);
        halfway |= now > floor + (64 << 10);
        for (size_t step = 64; step-- > 0;) {
            size_t bytes = floor + (now - floor) * step / 64;

            ck_assert_msg(residency_resize(r, bytes, &err) == 0, "%s", err.text);
            ck_assert_uint_le(residency_held_bytes(r), bytes);
            ck_assert_uint_eq(ledger_used(rig.ledger, POOL_RAM), residency_held_bytes(r));
        }
        rig_must_walk(r, 1, 1);
        residency_destroy(r);
    }
    ck_assert(halfway);
}
END_TEST

static int read_end, saved;

static void catch_lines(void)
{
    int ends[2];

    ck_assert_int_eq(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    saved = dup(STDERR_FILENO);
    ck_assert_int_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    close(ends[1]);
    read_end = ends[0];
}

/* Since the last look. */
static size_t lines_with(const char *part)
{
    static char text[65536];
    ssize_t n = read(read_end, text, sizeof text - 1);
    size_t found = 0;

    text[n > 0 ? n : 0] = '\0';
    for (const char *at = text; (at = strstr(at, part)); at++)
        found++;
    return found;
}

static void let_lines_go(void)
{
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(read_end);
}

/* One try to get from the floor to that many bytes, of which the first read or all charges fail. */
static void try_to_grow(struct residency *r, struct faulty *f, size_t bytes)
{
    struct err err = {0};

    ck_assert_int_eq(residency_resize(r, residency_floor_bytes(r), &err), 0);
    rig_must_walk(r, 0, 1);
    ck_assert_int_eq(residency_resize(r, bytes, &err), 0);
    if (f)
        f->fail_at = f->n_reads;
    else
        ledger_refuse_after(rig.ledger, 0);
    residency_between(r, &err);
    if (f)
        f->fail_at = -1;
    ledger_refuse_after(rig.ledger, -1);
    for (size_t token = 0; token < 3; token++)
        rig_must_walk(r, token, 1);
}

START_TEST(what_keeps_a_model_from_growing_is_said_once_for_each_cause)
{
    static const char failed[] =
        "go on streaming instead of coming home model='test' reason=\"reading tensor";
    static const char refused[] = "instead of coming home model='test' reason=\"model 'test' needs";
    struct faulty f = {.fail_at = -1, .errnum = EIO};
    struct reader_faults engine = {.pread = faulty_pread, .arg = &f};
    struct residency *r = rig_make(&engine);
    struct placement p;
    struct err err = {0};

    residency_plan(r, SIZE_MAX, &p);
    ck_assert_int_eq(rig_load(r, rig_floor(r), &err), 0);
    catch_lines();
    for (int i = 0; i < 3; i++)
        try_to_grow(r, &f, p.total_bytes);
    ck_assert_uint_eq(lines_with(failed), 1);
    for (int i = 0; i < 3; i++)
        try_to_grow(r, NULL, p.total_bytes);
    ck_assert_uint_eq(lines_with(refused), 1);
    /* what has worked since may fail anew */
    ck_assert_int_eq(residency_resize(r, p.total_bytes, &err), 0);
    for (size_t token = 0; token < 3; token++)
        rig_must_walk(r, token, 1);
    ck_assert_uint_eq(lines_with("coming home"), 0);
    try_to_grow(r, NULL, p.total_bytes);
    ck_assert_uint_eq(lines_with(refused), 1);
    let_lines_go();
    residency_destroy(r);
}
END_TEST

START_TEST(slots_that_are_refused_are_told_once)
{
    struct residency *r = rig_make(NULL);
    struct placement p;
    struct err err = {0};

    residency_plan(r, SIZE_MAX, &p);
    ck_assert_int_eq(rig_load(r, p.total_bytes - p.slots_bytes / 2, &err), 0);
    catch_lines();
    for (int i = 0; i < 3; i++) {
        ledger_refuse_after(rig.ledger, 0);
        ck_assert_int_eq(residency_resize(r, p.total_bytes - p.slots_bytes / 4, &err), 0);
        ledger_refuse_after(rig.ledger, -1);
        rig_must_walk(r, 0, 1);
    }
    ck_assert_uint_eq(lines_with("experts have no more slots model='test' reason="), 1);
    let_lines_go();
    residency_destroy(r);
}
END_TEST

/* Nothing dense streams after it, whatever the budget was before. */
static void raised(struct residency *r, size_t bytes)
{
    struct residency_stats s;
    struct err err = {0};

    ck_assert_msg(residency_resize(r, bytes, &err) == 0, "%s", err.text);
    for (size_t token = 0; token < 40; token++) {
        rig_must_walk(r, token, 1);
        ck_assert_uint_le(residency_held_bytes(r), ledger_budget(rig.ledger, POOL_RAM));
    }
    residency_stats(r, &s);
    ck_assert_uint_eq(s.placement.n_dropped, 0);
    ck_assert_uint_le(s.placement.total_bytes, bytes);
    ck_assert_uint_eq(ledger_used(rig.ledger, POOL_RAM), residency_held_bytes(r));
}

START_TEST(weights_come_home_also_where_the_last_have_no_room_beside_the_ring)
{
    struct faulty f = {.fail_at = -1};
    struct reader_faults engine = {.pread = faulty_pread, .arg = &f};
    struct residency *r = rig_make(&engine);
    struct residency_stats s;
    struct placement p, least;
    struct err err = {0};
    int failed = 0;
    size_t floor = rig_floor(r), bytes, staging = stream_staging_bytes(DENSE * sizeof(float));

    residency_plan(r, SIZE_MAX, &p);
    for (bytes = p.total_bytes; residency_plan(r, bytes, &least), !least.n_dropped; bytes -= 4096)
        continue;
    bytes += 4096; /* the least that has all dense weights at home */
    ck_assert_int_eq(ledger_set_budget(rig.ledger, POOL_RAM, bytes + staging, &err), 0);
    ck_assert_int_eq(rig_load(r, floor, &err), 0);
    rig_must_walk(r, 0, 1);
    raised(r, bytes);
    /* a read that fails on the way leaves a ring and what streamed before; a later budget tries again */
    for (long k = 0; k < 16; k++) {
        ck_assert_int_eq(residency_resize(r, residency_floor_bytes(r), &err), 0);
        rig_must_walk(r, 0, 1);
        ck_assert_int_eq(residency_resize(r, bytes, &err), 0);
        f.errnum = EIO;
        f.fail_at = f.n_reads + k;
        residency_between(r, &err);
        f.fail_at = -1;
        residency_stats(r, &s);
        failed += s.placement.n_dropped > 0;
        rig_must_walk(r, 1, 1);
        ck_assert_uint_eq(ledger_used(rig.ledger, POOL_RAM), residency_held_bytes(r));
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
    struct residency *r =
        residency_create(rig.file, rig.ledger, rig.cpu.ops, rig.cpu.be, "model 'test'");

    for (size_t i = 0; i < (size_t)MANY_LAYERS * MANY_EACH; i++) {
        const struct gguf_tensor *g = gguf_tensor_at(rig.file, 2 + i % MANY_EACH);
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
        rig_check_floats(data, 2 + i % MANY_EACH, 0, DENSE);
        residency_unpin(r, (extent_id)i);
    }
}

START_TEST(a_ring_is_as_deep_again_as_a_load_would_make_it)
{
    struct residency *r = make_long();
    struct residency_stats s;
    struct placement p, deep[2] = {0}; /* with as many drops as at the floor, and with the fewest */
    struct err err = {0};
    size_t floor = rig_floor(r);

    residency_plan(r, SIZE_MAX, &p);
    for (size_t bytes = floor; bytes < p.total_bytes; bytes += 4096) {
        struct placement at;

        residency_plan(r, bytes, &at);
        if (at.ring_depth > PLACEMENT_DEPTH_MIN)
            deep[deep[0].ring_depth > 0] = at;
    }
    ck_assert_int_eq(rig_load(r, floor, &err), 0);
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
        ck_assert_uint_eq(ledger_used(rig.ledger, POOL_RAM), residency_held_bytes(r));
        ck_assert_int_eq(residency_resize(r, floor, &err), 0);
        walk_long(r);
    }
    residency_destroy(r);
}
END_TEST

START_TEST(a_ring_that_is_refused_its_depth_is_told_once_and_goes_on)
{
    struct residency *r = make_long();
    struct placement deep = {0};
    struct residency_stats s;
    struct err err = {0};
    size_t floor = rig_floor(r);

    for (size_t bytes = floor; deep.ring_depth < PLACEMENT_DEPTH; bytes += 4096)
        residency_plan(r, bytes, &deep);
    ck_assert_int_eq(rig_load(r, floor, &err), 0);
    residency_stats(r, &s);
    ck_assert_uint_eq(deep.n_dropped, s.placement.n_dropped);
    catch_lines();
    for (int i = 0; i < 3; i++) {
        ledger_refuse_after(rig.ledger, 0);
        ck_assert_int_eq(residency_resize(r, deep.total_bytes, &err), 0);
        ledger_refuse_after(rig.ledger, -1);
        walk_long(r);
    }
    ck_assert_uint_eq(lines_with("the ring of dense weights is no deeper model='test' reason="), 1);
    let_lines_go();
    residency_destroy(r);
}
END_TEST

START_TEST(a_table_that_costs_few_slots_stays_until_it_does_not)
{
    struct residency *r;
    struct placement p;
    struct err err = {0};
    size_t all;

    rig.table_rows = FEW_ROWS;
    r = rig_make(NULL);
    residency_plan(r, SIZE_MAX, &p);
    all = p.total_bytes;
    ck_assert_int_eq(rig_load(r, all - p.slots_bytes / 32, &err), 0);
    ck_assert(!residency_is_by_row(r, 0));
    rig_must_walk(r, 0, 1);
    ck_assert_int_eq(residency_resize(r, all - p.slots_bytes / 24, &err), 0);
    ck_assert(!residency_is_by_row(r, 0));
    rig_must_walk(r, 1, 1);
    ck_assert_int_eq(residency_resize(r, all - p.slots_bytes, &err), 0);
    ck_assert(residency_is_by_row(r, 0));
    rig_must_walk(r, 2, 1);
    ck_assert_int_eq(residency_resize(r, all - p.slots_bytes / 32, &err), 0);
    rig_must_walk(r, 3, 1);
    ck_assert(!residency_is_by_row(r, 0)); /* and comes back */
    rig_must_walk(r, 4, 1);
    ck_assert_uint_le(residency_held_bytes(r), all - p.slots_bytes / 32);
    residency_destroy(r);
}
END_TEST

/* With all of it a model that was cut reads nothing any more, if the ledger and the drive let it. */
START_TEST(tables_come_home_when_all_else_has)
{
    struct residency_stats before, after;
    struct err err = {0};
    size_t floor, much;
    struct residency *r = rig_make(NULL);
    long n = _i - 1;
    bool home = false;

    ck_assert_int_eq(residency_load(r, NULL, NULL, NULL, &err), 0);
    much = 2 * residency_held_bytes(r);
    floor = residency_floor_bytes(r);
    for (int turn = 0; turn < 3; turn++) {
        ck_assert_int_eq(residency_resize(r, floor, &err), 0);
        ck_assert(residency_is_by_row(r, 0));
        rig_must_walk(r, (size_t)turn, 1);
        ck_assert_int_eq(residency_resize(r, much, &err), 0);
        ledger_refuse_after(rig.ledger, turn ? -1 : n); /* n < 0: of none */
        for (size_t i = 0; i < 4 && !home; i++) {
            rig_walk(r, i, 1, &err);
            home = !residency_is_by_row(r, 0);
            ck_assert_uint_eq(ledger_used(rig.ledger, POOL_RAM), residency_held_bytes(r));
        }
        ledger_refuse_after(rig.ledger, -1);
        ck_assert(home || turn == 0);
        home = false;
    }
    for (size_t i = 0; i < 40; i++) /* experts fill as they are missed */
        rig_must_walk(r, i, 12);
    residency_stats(r, &before);
    rig_must_walk(r, 3, 12);
    residency_stats(r, &after);
    ck_assert_uint_eq(after.bytes_read, before.bytes_read);
    residency_destroy(r);
    ck_assert_uint_eq(ledger_used(rig.ledger, POOL_RAM), 0);
}
END_TEST

START_TEST(a_change_of_budget_that_is_refused_its_charges_fails_one_token_at_most)
{
    for (long n = 0; n < 6; n++) {
        struct residency *r = rig_make(NULL);
        size_t floor, all;
        struct err err = {0};

        ck_assert_int_eq(residency_load(r, NULL, NULL, NULL, &err), 0);
        all = residency_held_bytes(r);
        floor = residency_floor_bytes(r);
        ledger_refuse_after(rig.ledger, n);
        residency_resize(r, floor, &err);
        residency_resize(r, (floor + all) / 2, &err);
        rig_walk(r, 0, 1, &err);
        ledger_refuse_after(rig.ledger, -1);
        rig_must_walk(r, 1, 1);
        ck_assert_uint_eq(ledger_used(rig.ledger, POOL_RAM), residency_held_bytes(r));
        residency_destroy(r);
        ck_assert_uint_eq(ledger_used(rig.ledger, POOL_RAM), 0);
    }
}
END_TEST

TCase *tcase_memory_resize(void)
{
    TCase *tc = tcase_create("resize");

    tcase_add_checked_fixture(tc, rig_set_up, rig_tear_down);
    tcase_add_loop_test(tc, a_budget_may_be_cut_and_raised_between_two_layers, 0, 2);
    tcase_add_test(tc, a_budget_that_is_cut_while_weights_come_home_is_kept_wherever_they_are);
    tcase_add_test(tc, what_keeps_a_model_from_growing_is_said_once_for_each_cause);
    tcase_add_test(tc, slots_that_are_refused_are_told_once);
    tcase_add_test(tc, a_ring_that_is_refused_its_depth_is_told_once_and_goes_on);
    tcase_add_test(tc, weights_come_home_also_where_the_last_have_no_room_beside_the_ring);
    tcase_add_test(tc, a_ring_is_as_deep_again_as_a_load_would_make_it);
    tcase_add_test(tc, a_table_that_costs_few_slots_stays_until_it_does_not);
    tcase_add_loop_test(tc, tables_come_home_when_all_else_has, 0, 24);
    tcase_add_test(tc, a_change_of_budget_that_is_refused_its_charges_fails_one_token_at_most);
    return tc;
}
