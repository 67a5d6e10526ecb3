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
#include "daemon/memory/calibrate.h"
#include "daemon/memory/guard.h"
#include "tests/support/faulty.h"
#include "tests/support/scratch.h"
#include "tests/unit/memory/rig.h"

TCase *tcase_memory_streaming(void);

START_TEST(every_budget_from_the_floor_up_gives_the_right_bytes_and_is_kept)
{
    struct residency *r;
    size_t floor, all;
    struct placement p;
    struct err err = {0};

    rig.table_rows = _i ? FEW_ROWS : N_ROWS;
    r = rig_make(NULL);
    floor = rig_floor(r);
    residency_plan(r, SIZE_MAX, &p);
    all = p.total_bytes;
    ck_assert_uint_lt(floor, all);
    residency_destroy(r);
    for (size_t step = 0; step <= 12; step++) {
        size_t bytes = floor + (all - floor) * step / 12;

        r = rig_make(NULL);
        ck_assert_msg(rig_load(r, bytes, &err) == 0, "%s", err.text);
        ck_assert_uint_le(residency_held_bytes(r), bytes);
        ck_assert_uint_eq(ledger_used(rig.ledger, POOL_RAM), residency_held_bytes(r));
        for (size_t token = 0; token < 8; token++)
            rig_must_walk(r, token, token == 3 ? 16 : 1);
        ck_assert_uint_eq(ledger_used(rig.ledger, POOL_RAM), residency_held_bytes(r));
        residency_destroy(r);
    }
}
END_TEST

START_TEST(a_read_that_fails_names_its_tensor_fails_once_and_the_next_token_is_right)
{
    struct faulty f = {.fail_at = -1};
    struct reader_faults engine = {.pread = faulty_pread, .arg = &f};
    struct residency *r = rig_make(&engine);
    struct err err = {0};
    long first, last;

    ck_assert_int_eq(rig_load(r, rig_floor(r), &err), 0);
    first = f.n_reads;
    rig_must_walk(r, 0, 1);
    rig_must_walk(r, 1, 9);
    last = f.n_reads;
    residency_destroy(r);
    ck_assert_int_gt(last, first + N_LAYERS);
    for (long n = first; n < last; n++) {
        f = (struct faulty){.fail_at = n, .errnum = n % 2 ? EIO : 0};
        r = rig_make(&engine);
        ck_assert_int_eq(rig_load(r, rig_floor(r), &err), 0);
        for (size_t token = 0, failed = 0; token < 4; token++) {
            err_clear(&err);
            if (rig_walk(r, token, token == 1 ? 9 : 1, &err) >= 0)
                continue;
            ck_assert_int_eq(err.kind, ERR_IO);
            ck_assert_int_eq(err.param[0], 't');
            ck_assert_uint_eq(failed++, 0);
        }
        residency_destroy(r);
        ck_assert_uint_eq(ledger_used(rig.ledger, POOL_RAM), 0);
    }
}
END_TEST

static _Atomic bool cancel;

static void cancel_it(void *arg, size_t done, size_t total)
{
    size_t *held = arg;

    ck_assert_uint_le(done, total);
    ck_assert_uint_gt(total, 0);
    *held = ledger_used(rig.ledger, POOL_RAM);
    cancel = true;
}

/* The first time that it is told of anything it measures, and has nothing but buffers. */
START_TEST(a_load_is_cancelled_while_it_measures_the_drive)
{
    struct residency *r = rig_make(NULL);
    struct placement p;
    struct err err = {0};
    size_t held = 0;

    residency_set_state_dir(r, scratch_make());
    residency_plan(r, rig_floor(r), &p);
    residency_set_placement(r, &p);
    cancel = false;
    ck_assert_int_eq(residency_load(r, cancel_it, &held, &cancel, &err), -ERR_CANCELLED);
    ck_assert(held == CALIBRATE_STAGING || held == CALIBRATE_STAGING_LEAST);
    ck_assert_uint_eq(ledger_used(rig.ledger, POOL_RAM), 0);
    ck_assert_int_eq(residency_load(r, NULL, NULL, NULL, &err), 0);
    rig_must_walk(r, 0, 1);
    residency_destroy(r);
    ck_assert_int_eq(scratch_remove(), 0);
}
END_TEST

START_TEST(a_row_that_comes_again_is_not_read_again)
{
    struct faulty f = {.fail_at = -1};
    struct reader_faults engine = {.pread = faulty_pread, .arg = &f};
    struct residency *r = rig_make(&engine);
    const void *row;
    struct err err = {0};
    long before;

    ck_assert_int_eq(rig_load(r, rig_floor(r), &err), 0);
    ck_assert(residency_is_by_row(r, 0));
    for (int round = 0; round < 3; round++)
        for (int32_t id = 0; id < N_ROWS; id += 3)
            for (int again = 0; again < 3; again++) {
                before = f.n_reads;
                ck_assert_int_eq(residency_rows(r, 0, &id, 1, &row, &err), 0);
                rig_check_floats(row, 0, (size_t)id * ROW, ROW);
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
        rig_check_floats(row, 0, (size_t)id * ROW, ROW);
    }
    residency_destroy(r);
}
END_TEST

START_TEST(every_charge_refused_in_turn_leaves_nothing_and_a_later_load_works)
{
    struct residency *r = rig_make(NULL);
    size_t floor = rig_floor(r), n = 0;
    struct err err = {0};

    for (;; n++) {
        int rc;

        ledger_refuse_after(rig.ledger, (long)n);
        rc = rig_load(r, floor + floor / 3, &err);
        ledger_refuse_after(rig.ledger, -1);
        if (rc == 0)
            break;
        ck_assert_int_eq(rc, -ERR_NOMEM);
        ck_assert_uint_eq(ledger_used(rig.ledger, POOL_RAM), 0);
    }
    ck_assert_uint_ge(n, 3);
    rig_must_walk(r, 0, 1);
    residency_destroy(r);
}
END_TEST

START_TEST(prefill_does_not_take_the_slots_of_what_decode_uses)
{
    struct residency *r = rig_make(NULL);
    struct residency_stats a, b;
    struct placement p;
    struct err err = {0};

    /* room for all experts but a few, dense weights resident */
    residency_plan(r, SIZE_MAX, &p);
    ck_assert_int_eq(rig_load(r, p.total_bytes - p.slots_bytes / 3, &err), 0);
    for (size_t i = 0; i < 6; i++)
        rig_must_walk(r, 0, 1); /* the same two experts of every layer */
    rig_must_walk(r, 1, 16);    /* all experts, once */
    residency_stats(r, &a);
    rig_must_walk(r, 0, 1);
    residency_stats(r, &b);
    ck_assert_uint_eq(b.uses - a.uses, N_LAYERS * N_USED);
    ck_assert_uint_eq(b.hits - a.hits, N_LAYERS * N_USED);
    residency_destroy(r);
}
END_TEST

START_TEST(what_is_chosen_while_all_is_there_is_noted_and_a_cut_keeps_it)
{
    struct residency *r = rig_make(NULL);
    struct curve_point points[CURVE_POINTS];
    struct curve_profile profile;
    struct residency_expert used, unused;
    struct residency_stats s;
    struct err err = {0};
    size_t all;

    ck_assert_int_eq(residency_load(r, NULL, NULL, NULL, &err), 0);
    ck_assert_int_eq(residency_curve(r, points), 0);
    ck_assert(!residency_curve_profile(r, &profile));
    rig_must_walk(r, 1, 16);
    for (size_t i = 0; i < 2 * CURVE_PROFILE_TOKENS; i++)
        rig_must_walk(r, 0, 1); /* experts i and i + 1 of layer i, round and round */
    ck_assert_int_eq(residency_curve(r, points), CURVE_POINTS);
    ck_assert_double_gt(points[0].hit_rate, 0.9);
    ck_assert(residency_curve_profile(r, &profile));
    ck_assert_double_gt(curve_profile_hits(&profile, N_USED), 0.9);
    curve_profile_clear(&profile);
    residency_expert(r, 3, 4, &used);
    residency_expert(r, 3, 0, &unused);
    ck_assert_double_gt(used.heat, unused.heat);
    ck_assert(used.resident && unused.resident);
    ck_assert_uint_eq(used.reads + used.read_bytes, 0); /* after the load none was read */
    ck_assert_uint_gt(unused.unused_tokens, used.unused_tokens);
    residency_stats(r, &s);
    ck_assert_uint_eq(s.uses, 0); /* of the cache, which there is none of */
    all = residency_held_bytes(r);
    ck_assert_int_eq(residency_resize(r, all - s.placement.slots_bytes / 3, &err), 0);
    rig_must_walk(r, 0, 1);
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
    const struct gguf_tensor *t = gguf_tensor_at(rig.file, 4); /* the gates of layer 0 */
    struct gates g = {.offset = t->offset, .bytes = t->bytes};
    struct reader_faults engine = {.pread = watch_gates, .arg = &g, .no_direct = true};
    struct residency *r = rig_make(&engine);
    struct residency_layer l;
    struct err err = {0};

    ck_assert_int_eq(rig_load(r, rig_floor(r), &err), 0);
    g.n = 0;
    rig_must_walk(r, 0, 16); /* all experts of every layer */
    ck_assert_uint_eq(g.n, N_EXPERTS);
    for (size_t i = 0; i < g.n; i++)
        ck_assert_uint_eq(g.seen[i], g.offset + i * (g.bytes / N_EXPERTS));
    residency_layer(r, 0, &l);
    ck_assert_uint_eq(l.wanted_bytes, N_EXPERTS * RESIDENCY_PARTS * SLICE * sizeof(float));
    ck_assert_uint_eq(l.read_bytes, l.wanted_bytes);
    g.n = 0;
    rig_must_walk(r, 0, 2); /* the union of two rows: experts 0, 1 and 2 */
    ck_assert_uint_eq(g.n, 3);
    for (size_t i = 0; i < g.n; i++)
        ck_assert_uint_eq(g.seen[i], g.offset + i * (g.bytes / N_EXPERTS));
    residency_destroy(r);
}
END_TEST

START_TEST(what_was_read_ahead_and_given_up_is_told_by_layer)
{
    struct residency *r = rig_make(NULL);
    struct residency_streamed l;
    struct residency_stats s;
    uint64_t ahead = 0, unused = 0;
    struct err err = {0};

    ck_assert_int_eq(rig_load(r, rig_floor(r) + 2 * DENSE * sizeof(float), &err), 0);
    for (size_t token = 0; token < 3; token++)
        rig_must_walk(r, token, 1);
    residency_settle(r); /* the first layers of the next token are there */
    residency_stats(r, &s);
    ck_assert_uint_gt(s.ahead_bytes, 0);
    ck_assert_uint_eq(s.ahead_unused_bytes, 0);
    ck_assert_int_eq(residency_resize(r, rig_floor(r), &err), 0);
    residency_stats(r, &s);
    ck_assert_uint_gt(s.ahead_unused_bytes, 0);
    for (size_t i = 0; i < residency_n_streamed(r); i++) {
        if (!residency_streamed(r, i, &l))
            continue;
        ck_assert_uint_le(l.ahead_unused_bytes, l.ahead_bytes);
        ck_assert_uint_le(l.ahead_bytes, l.read_bytes);
        ahead += l.ahead_bytes;
        unused += l.ahead_unused_bytes;
    }
    ck_assert_uint_eq(ahead, s.ahead_bytes);
    ck_assert_uint_eq(unused, s.ahead_unused_bytes);
    residency_streamed(r, N_LAYERS - 1, &l);
    ck_assert_uint_eq(l.ahead_unused_bytes, 0); /* it was far from its turn */
    residency_destroy(r);
}
END_TEST

/* Of all experts of a layer together: reads, and their bytes. */
static uint64_t sum_reads(const struct residency *r, size_t i, uint64_t *ret_bytes)
{
    uint64_t reads = 0;

    *ret_bytes = 0;
    for (unsigned e = 0; e < N_EXPERTS; e++) {
        struct residency_expert x;

        residency_expert(r, i, e, &x);
        reads += x.reads;
        *ret_bytes += x.read_bytes;
    }
    return reads;
}

START_TEST(of_every_expert_it_is_told_where_it_is_when_it_was_used_and_what_was_read)
{
    struct residency *r = rig_make(NULL);
    struct residency_expert x;
    struct residency_layer l;
    struct err err = {0};
    uint64_t bytes;

    ck_assert_int_eq(rig_load(r, rig_floor(r), &err), 0);
    residency_expert(r, 0, 0, &x);
    ck_assert(!x.resident && !x.reads && !x.read_bytes);
    ck_assert_uint_eq(x.unused_tokens, RESIDENCY_NEVER);
    rig_must_walk(r, 0, 2); /* a chunk of two rows: experts 0, 1 and 2 of the first layer */
    for (unsigned e = 0; e < N_EXPERTS; e++) {
        residency_expert(r, 0, e, &x);
        ck_assert_uint_eq(x.reads, e < 3); /* no expert twice in a chunk */
        ck_assert_uint_eq(x.unused_tokens, e < 3 ? 0 : RESIDENCY_NEVER);
        if (e < 3)
            ck_assert_uint_ge(x.read_bytes, RESIDENCY_PARTS * SLICE * sizeof(float));
        else
            ck_assert_uint_eq(x.read_bytes, 0);
    }
    for (size_t i = 0; i < 9; i++)
        rig_must_walk(r, 4, 1); /* experts 2 and 4 */
    residency_expert(r, 0, 0, &x);
    ck_assert_uint_eq(x.unused_tokens, 9);
    residency_expert(r, 0, 2, &x);
    ck_assert_uint_eq(x.unused_tokens, 0);
    for (size_t i = 0; i < N_LAYERS; i++) {
        residency_layer(r, i, &l);
        ck_assert_uint_gt(sum_reads(r, i, &bytes), 0);
        ck_assert_uint_eq(bytes, l.read_bytes);
    }
    residency_destroy(r);
}
END_TEST

static uint64_t unused_tokens(const struct residency *r, unsigned e)
{
    struct residency_expert x;

    residency_expert(r, 0, e, &x);
    return x.unused_tokens;
}

START_TEST(the_last_use_of_an_expert_is_counted_in_tokens_also_where_only_some_are_watched)
{
    struct residency *r = rig_make(NULL);
    struct residency_stats s;
    struct err err = {0};
    uint64_t unseen;

    ck_assert_int_eq(residency_load(r, NULL, NULL, NULL, &err), 0);
    rig_must_walk(r, 4, 1); /* experts 2 and 4 */
    for (size_t i = 0; i < 300; i++)
        rig_must_walk(r, 0, 1); /* experts 0 and 1, watched at first */
    ck_assert_uint_eq(unused_tokens(r, 2), 300);
    unseen = unused_tokens(r, 0);
    ck_assert_uint_ge(unseen, 300 - RESIDENCY_WATCH_TOKENS);
    ck_assert_uint_lt(unseen, 300);
    rig_must_walk(r, 0, 2); /* of a prompt all is seen */
    ck_assert_uint_eq(unused_tokens(r, 0), 0);
    ck_assert_uint_eq(unused_tokens(r, 4), 301);
    residency_stats(r, &s);
    ck_assert_int_eq(
        residency_resize(r, residency_held_bytes(r) - s.placement.slots_bytes / 3, &err), 0);
    rig_must_walk(r, 0, 1); /* by slots */
    ck_assert_uint_eq(unused_tokens(r, 0), 0);
    ck_assert_uint_eq(unused_tokens(r, 4), 302);
    residency_destroy(r);
}
END_TEST

/* Of layer 0: a tensor of gates and ups, one after the other in each slice, and the downs. */
static struct residency *make_fused(void)
{
    struct residency *r = residency_create(rig.file, rig.ledger, rig.cpu.ops, rig.cpu.be, "test");

    for (size_t k = 0; k < 2; k++) {
        const struct gguf_tensor *g = gguf_tensor_at(rig.file, 4 + k);
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
            rig_check_floats(data[e][0], 4, e * SLICE, SLICE - up);
            rig_check_floats(data[e][1], 4, e * SLICE + up, SLICE - up);
            rig_check_floats(data[e][2], 5, e * SLICE, SLICE);
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
        ck_assert_int_eq(rig_load(r, p.total_bytes - p.slots_bytes / 2, &err), 0);
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
    struct residency *r = rig_make(&engine);
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
    ck_assert_int_eq(rig_load(r, p.total_bytes - p.slots_bytes / 3, &err), 0);
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
    rig_check_floats(data[3][0], 4, 3 * SLICE, SLICE);
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
    struct machine m = {.r = rig_make(NULL)};
    struct residency_stats s;
    struct placement p;
    struct err err = {0};
    size_t most, little;

    residency_set_probe(m.r, probe_machine, &m);
    residency_plan(m.r, SIZE_MAX, &p);
    most = p.total_bytes - p.slots_bytes / N_EXPERTS;
    little = p.total_bytes - p.slots_bytes * 4 / N_EXPERTS;
    ck_assert_int_eq(rig_load(m.r, little, &err), 0);
    for (size_t i = 0; i < GUARD_WINDOW; i++)
        rig_must_walk(m.r, i, 1);
    residency_stats(m.r, &s);
    m.real = s.placement.n_slots;
    ck_assert_int_eq(residency_resize(m.r, most, &err), 0);
    residency_stats(m.r, &s);
    ck_assert_uint_gt(s.placement.n_slots, m.real + GUARD_STEP_LEAST);
    for (size_t i = 0; i < 2 * GUARD_WINDOW + 1; i++)
        rig_must_walk(m.r, i, 1);
    residency_stats(m.r, &s);
    ck_assert_uint_eq(s.slots_cap, m.real);
    ck_assert_uint_eq(s.placement.n_slots, m.real);
    ck_assert_uint_eq(ledger_used(rig.ledger, POOL_RAM), residency_held_bytes(m.r));
    ck_assert_int_eq(residency_resize(m.r, most, &err), 0); /* the cap holds */
    residency_stats(m.r, &s);
    ck_assert_uint_eq(s.placement.n_slots, m.real);
    m.real = 0;
    for (size_t i = 0; i < GUARD_REST + 1; i++)
        rig_must_walk(m.r, i, 1);
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

    tcase_add_checked_fixture(tc, rig_set_up, rig_tear_down);
    tcase_add_loop_test(tc, every_budget_from_the_floor_up_gives_the_right_bytes_and_is_kept, 0, 2);
    tcase_add_test(tc, a_read_that_fails_names_its_tensor_fails_once_and_the_next_token_is_right);
    tcase_add_test(tc, a_load_is_cancelled_while_it_measures_the_drive);
    tcase_add_test(tc, a_row_that_comes_again_is_not_read_again);
    tcase_add_test(tc, every_charge_refused_in_turn_leaves_nothing_and_a_later_load_works);
    tcase_add_test(tc, what_is_chosen_while_all_is_there_is_noted_and_a_cut_keeps_it);
    tcase_add_test(tc, prefill_does_not_take_the_slots_of_what_decode_uses);
    tcase_add_test(tc, hits_are_given_while_the_misses_of_the_same_choice_are_being_read);
    tcase_add_test(tc, more_slots_that_make_tokens_slower_are_given_back_and_tried_again_later);
    tcase_add_test(tc, what_was_read_ahead_and_given_up_is_told_by_layer);
    tcase_add_test(tc, of_every_expert_it_is_told_where_it_is_when_it_was_used_and_what_was_read);
    tcase_add_test(tc,
                   the_last_use_of_an_expert_is_counted_in_tokens_also_where_only_some_are_watched);
    tcase_add_test(tc, a_chunk_reads_each_expert_that_it_wants_once_in_the_order_of_the_file);
    tcase_add_test(tc, two_matrices_of_one_tensor_are_one_read_and_each_has_its_place);
    return tc;
}
