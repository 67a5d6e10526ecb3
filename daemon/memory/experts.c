/*
 * Experts in slots: a layer's quota is its slots of the first ranks.  A choice
 * pins what is there, reads what is missing, and gives addresses as they come.
 *
 * Decode evicts what is worth least in its layer to make room for a miss.
 * Prefill takes what is free, or worth less than what it brings; everything
 * else passes through a few landing places, read once a chunk in the order of
 * the file.  Landing places also serve a layer whose quota is less than a
 * token's choice.
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/clock.h"
#include "daemon/memory/residency_priv.h"

/* Hits that a batch computes between two looks at the reader. */
#define HITS_AT_ONCE 2

size_t experts_book_bytes(const struct residency *r)
{
    size_t n = 0;

    if (!r->in.n_units)
        return 0;
    for (size_t i = 0; i < r->in.n_units; i++)
        n += r->units[i].n_experts * (sizeof(struct policy_expert) + sizeof(struct expert_told) +
                                      2 * sizeof(int32_t) + sizeof(char) + sizeof(bool));
    n += curve_bytes((unsigned)r->in.n_units, (unsigned)r->most_experts);
    return n + r->most_experts * (RESIDENCY_PARTS * (sizeof(struct flight) + sizeof(void *)) +
                                  2 * sizeof(uint32_t) + 3);
}

unsigned experts_resident(const struct unit *u)
{
    unsigned n = 0;

    for (unsigned e = 0; e < u->n_experts && u->experts; e++)
        n += u->experts[e].resident;
    return n;
}

static void set_quotas(struct residency *r, size_t n_slots)
{
    for (size_t i = 0; i < r->in.n_units; i++)
        r->units[i].quota =
            (unsigned)MIN(placement_quota(&r->in, n_slots, i), (size_t)r->units[i].n_experts);
}

static struct curve *make_curve(const struct residency *r)
{
    struct policy_layer *layers = XNEW_ARRAY(struct policy_layer, r->in.n_units);
    struct curve *c;

    for (size_t i = 0; i < r->in.n_units; i++)
        layers[i] = (struct policy_layer){.n_experts = r->units[i].n_experts,
                                          .n_used = r->n_used,
                                          .slot_bytes = r->units[i].slot_bytes};
    c = curve_create(layers, (unsigned)r->in.n_units);
    free(layers);
    return c;
}

void experts_open(struct residency *r, bool all_there)
{
    struct choice *c = &r->choice;

    for (size_t i = 0; i < r->in.n_units; i++) {
        struct unit *u = &r->units[i];

        u->experts = XNEW_ARRAY(struct policy_expert, u->n_experts);
        u->told = XNEW_ARRAY(struct expert_told, u->n_experts);
        u->slot_of = XNEW_ARRAY(int32_t, u->n_experts);
        u->state = XNEW_ARRAY(unsigned char, u->n_experts);
        u->tight = XNEW_ARRAY(bool, u->n_experts);
        u->holder = XNEW_ARRAY(int32_t, u->n_experts);
        for (unsigned e = 0; e < u->n_experts; e++) {
            u->slot_of[e] = all_there ? (int32_t)e : NO_SLOT;
            u->holder[e] = all_there ? (int32_t)e : NO_EXPERT;
            u->state[e] = all_there ? EXPERT_READY : EXPERT_ABSENT;
            u->experts[e].resident = u->tight[e] = all_there;
        }
    }
    set_quotas(r, r->p.n_slots);
    r->landing_taken = XNEW_ARRAY(bool, r->n_landing);
    c->ids = XNEW_ARRAY(uint32_t, r->most_experts);
    c->count = XNEW_ARRAY(uint32_t, r->most_experts);
    c->stage = XNEW_ARRAY(unsigned char, r->most_experts);
    c->pending = XNEW_ARRAY(unsigned char, r->most_experts);
    c->flights = XNEW_ARRAY(struct flight, r->most_experts * RESIDENCY_PARTS);
    c->data = xcalloc(r->most_experts, sizeof *c->data);
    r->last_unit = SIZE_MAX;
    r->curve = make_curve(r);
}

void experts_close(struct residency *r)
{
    struct choice *c = &r->choice;

    for (size_t i = 0; i < r->in.n_units; i++) {
        struct unit *u = &r->units[i];

        free(u->experts);
        free(u->told);
        free(u->slot_of);
        free(u->state);
        free(u->tight);
        free(u->holder);
        u->experts = NULL;
        u->told = NULL;
        u->slot_of = u->holder = NULL;
        u->state = NULL;
        u->tight = NULL;
    }
    curve_destroy(r->curve);
    r->curve = NULL;
    choice_end_trace(r, NULL);
    free(r->landing_taken);
    free(c->ids);
    free(c->count);
    free(c->stage);
    free(c->pending);
    free(c->flights);
    free(c->data);
    r->landing_taken = NULL;
    *c = (struct choice){0};
}

/* -- slots -------------------------------------------------------------------------------- */

static char *slot_data(const struct residency *r, const struct unit *u, int32_t slot)
{
    if (slot < NO_SLOT)
        return (char *)r->landing.data + (size_t)(-2 - slot) * r->most_slot;
    return (char *)r->slots.data + (size_t)slot * r->unit_at[r->in.n_units] + u->at;
}

static size_t part_at(const struct residency *r, const struct unit *u, unsigned part)
{
    return r->items[u->parts[part]].at;
}

static uint64_t offset_of(const struct residency *r, const struct unit *u, unsigned part,
                          uint32_t e)
{
    return r->items[u->parts[part]].e.offset + e * u->slice_bytes[part];
}

static size_t expert_bytes(const struct unit *u)
{
    size_t n = 0;

    for (unsigned p = 0; p < u->n_parts; p++)
        n += u->slice_bytes[p];
    return n;
}

static void take_out(struct residency *r, struct unit *u, uint32_t e)
{
    int32_t slot = u->slot_of[e];

    if (slot >= 0)
        u->holder[slot] = NO_EXPERT;
    else if (slot < NO_SLOT)
        r->landing_taken[-2 - slot] = false;
    u->slot_of[e] = NO_SLOT;
    u->state[e] = EXPERT_ABSENT;
    u->experts[e].resident = false;
}

static int32_t free_slot(const struct unit *u)
{
    for (unsigned s = 0; s < u->quota; s++)
        if (u->holder[s] == NO_EXPERT)
            return (int32_t)s;
    return NO_SLOT;
}

static int32_t free_landing(const struct residency *r)
{
    for (unsigned i = 0; i < r->n_landing; i++)
        if (!r->landing_taken[i])
            return -2 - (int32_t)i;
    return NO_SLOT;
}

/* Where a missing expert goes; NO_SLOT when it must wait for a place. */
static int32_t find_place(struct residency *r, struct unit *u, uint32_t e)
{
    int32_t slot = free_slot(u);
    unsigned victim;

    if (slot != NO_SLOT)
        return slot;
    if (policy_victims(u->experts, u->n_experts, r->token, 1, &victim) &&
        (r->choice.decode ||
         policy_prefill_may_evict(&u->experts[e], &u->experts[victim], r->token))) {
        slot = u->slot_of[victim];
        take_out(r, u, victim);
        return slot;
    }
    return free_landing(r);
}

/* -- a choice ------------------------------------------------------------------------------- */

static void read_expert(struct residency *r, size_t i, int32_t slot)
{
    struct choice *c = &r->choice;
    struct unit *u = c->unit;
    uint32_t e = c->ids[i];
    struct read *list[RESIDENCY_PARTS];

    if (slot >= 0)
        u->holder[slot] = (int32_t)e;
    else
        r->landing_taken[-2 - slot] = true;
    u->slot_of[e] = slot;
    u->state[e] = EXPERT_READING;
    u->tight[e] = false;
    u->told[e].reads += u->told[e].reads < UINT32_MAX;
    c->stage[i] = ENTRY_READING;
    c->pending[i] = (unsigned char)u->n_parts;
    for (unsigned p = 0; p < u->n_parts; p++) {
        struct flight *f = &c->flights[i * RESIDENCY_PARTS + p];

        *f = (struct flight){.kind = FLIGHT_EXPERT, .index = i};
        f->rd = (struct read){.part = r->items[u->parts[p]].e.part,
                              .offset = offset_of(r, u, p, e),
                              .bytes = u->slice_bytes[p],
                              .buffer = slot_data(r, u, slot) + part_at(r, u, p),
                              .capacity = reader_slot_bytes_any(u->slice_bytes[p]),
                              .name = r->items[u->parts[p]].e.name,
                              .user = f};
        list[p] = &f->rd;
    }
    reader_submit(r->reader, list, u->n_parts);
}

/* Reads what has a place, in the order of the file. */
static void issue(struct residency *r)
{
    struct choice *c = &r->choice;

    for (size_t i = 0; i < c->n; i++) {
        int32_t slot;

        if (c->stage[i] != ENTRY_WAITS)
            continue;
        slot = find_place(r, c->unit, c->ids[i]);
        if (slot == NO_SLOT)
            return;
        read_expert(r, i, slot);
    }
}

void experts_landed(struct residency *r, struct flight *f)
{
    struct choice *c = &r->choice;
    struct unit *u = c->unit;
    uint32_t e = c->ids[f->index];

    c->pending[f->index]--;
    u->read_bytes += f->rd.read_bytes;
    u->told[e].read_bytes += f->rd.read_bytes;
    if (f->rd.result < 0 && !c->failed) {
        c->failed = true;
        read_check(&f->rd, &c->err);
    }
    if (c->pending[f->index] == 0) {
        c->stage[f->index] = ENTRY_LANDED;
        u->state[e] = EXPERT_READY;
        u->experts[e].resident = u->slot_of[e] >= 0;
    }
}

/* Pins and hits. */
static void look_up(struct residency *r)
{
    struct choice *c = &r->choice;
    struct unit *u = c->unit;
    size_t bytes = expert_bytes(u), missed = 0;

    for (size_t i = 0; i < c->n; i++) {
        uint32_t e = c->ids[i];
        bool hit = u->state[e] == EXPERT_READY;

        u->experts[e].pins++;
        c->stage[i] = hit ? ENTRY_HIT : ENTRY_WAITS;
        u->wanted_bytes += bytes;
        u->hit_bytes += hit ? bytes : 0;
        missed += !hit;
        if (c->decode) {
            r->uses++;
            r->hits += hit;
        }
    }
    if (c->decode)
        u->missed[MIN(missed, (size_t)RESIDENCY_MISSED - 1)]++;
}

void residency_experts_begin(struct residency *r, const struct residency_choice *want)
{
    struct choice *c = &r->choice;

    if (choice_begin(r, want))
        cliff_token_begins(r);
    c->failed = false;
    /* Decode wants its experts one after another; of a chunk all are wanted, and each computes for
     * long between two looks at the reader. */
    reader_set_ahead(r->reader, c->decode ? 0 : r->in.landing_bytes);
    memcpy(c->offsets, want->offsets, sizeof c->offsets);
    for (unsigned k = 0; k < RESIDENCY_PARTS; k++)
        for (unsigned p = 0; p < c->unit->n_parts; p++)
            if (c->unit->parts[p] == want->parts[k])
                c->order[k] = p;
    look_up(r);
    choice_note(r, want->rows);
    issue(r);
}

static const char *address(const struct residency *r, const struct unit *u, uint32_t e,
                           unsigned part)
{
    const char *at = slot_data(r, u, u->slot_of[e]) + part_at(r, u, part);

    return u->tight[e] ? at : at + reader_skip(offset_of(r, u, part, e));
}

static void give(struct residency *r, size_t i)
{
    struct choice *c = &r->choice;

    for (unsigned k = 0; k < RESIDENCY_PARTS; k++)
        c->data[c->ids[i]][k] = address(r, c->unit, c->ids[i], c->order[k]) + c->offsets[k];
    c->stage[i] = ENTRY_GIVEN;
}

/* What was given has been computed: it may move. */
static void take_back(struct residency *r)
{
    struct choice *c = &r->choice;
    struct unit *u = c->unit;

    for (size_t i = 0; i < c->n; i++) {
        uint32_t e = c->ids[i];

        if (c->stage[i] != ENTRY_GIVEN)
            continue;
        c->stage[i] = ENTRY_DONE;
        memset(c->data[e], 0, sizeof c->data[e]);
        u->experts[e].pins--;
        if (u->slot_of[e] < NO_SLOT)
            take_out(r, u, e);
    }
}

static int give_stage(struct residency *r, enum entry_stage stage, int most)
{
    struct choice *c = &r->choice;
    int n = 0;

    for (size_t i = 0; i < c->n && n < most; i++)
        if (c->stage[i] == stage) {
            give(r, i);
            n++;
        }
    return n;
}

static bool is_done(const struct choice *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->stage[i] != ENTRY_DONE)
            return false;
    return true;
}

int residency_experts_next(struct residency *r, const void *(**ret_data)[RESIDENCY_PARTS],
                           struct err *err)
{
    struct choice *c = &r->choice;
    int n = 0;

    take_back(r);
    issue(r);
    residency_pump(r, 0);
    while (!c->failed && !n && !is_done(c)) {
        n = give_stage(r, ENTRY_LANDED, (int)c->n);
        if (!n)
            n = give_stage(r, ENTRY_HIT, c->decode ? (int)c->n : HITS_AT_ONCE);
        if (!n) {
            int64_t t0 = clock_us();

            residency_pump(r, 1);
            c->unit->wait_us += (uint64_t)(clock_us() - t0);
        }
    }
    if (c->failed) {
        if (err)
            *err = c->err;
        residency_experts_drop(r);
        return -ERR_IO;
    }
    if (!n) {
        if (c->unit == &r->units[r->in.n_units - 1])
            cliff_token_ends(r);
        c->unit = NULL;
    }
    *ret_data = c->data;
    return n;
}

void residency_experts_drop(struct residency *r)
{
    struct choice *c = &r->choice;
    struct unit *u = c->unit;

    if (!u)
        return;
    reader_cancel(r->reader);
    ring_forget(r);
    for (size_t i = 0; i < c->n; i++) {
        uint32_t e = c->ids[i];

        if (c->stage[i] == ENTRY_DONE)
            continue;
        memset(c->data[e], 0, sizeof c->data[e]);
        u->experts[e].pins--;
        /* whatever was being read, landed or not, is not taken for good */
        if (c->stage[i] == ENTRY_READING || c->stage[i] == ENTRY_LANDED || u->slot_of[e] < NO_SLOT)
            take_out(r, u, e);
    }
    c->unit = NULL;
}

/* -- another number of slots ------------------------------------------------------------------ */

/* The best of a layer move down to the slots that stay; the rest goes. */
static void cut_unit(struct residency *r, struct unit *u, unsigned quota)
{
    unsigned *worst = XNEW_ARRAY(unsigned, u->n_experts);
    unsigned n = 0, n_gone;

    for (unsigned e = 0; e < u->n_experts; e++)
        n += u->slot_of[e] >= 0;
    n_gone = n > quota ? n - quota : 0;
    /* all alike, as after a load: those that lie highest go, and nothing moves */
    if (r->token)
        n_gone = policy_victims(u->experts, u->n_experts, r->token, n_gone, worst);
    else
        for (unsigned i = 0; i < n_gone; i++)
            worst[i] = (unsigned)u->holder[n - 1 - i];
    for (unsigned i = 0; i < n_gone; i++)
        take_out(r, u, worst[i]);
    u->quota = quota;
    for (unsigned s = quota; s < u->n_experts; s++) {
        int32_t e = u->holder[s], to;

        if (e == NO_EXPERT)
            continue;
        to = free_slot(u);
        memcpy(slot_data(r, u, to), slot_data(r, u, (int32_t)s), u->slot_bytes);
        u->holder[s] = NO_EXPERT;
        u->holder[to] = e;
        u->slot_of[e] = to;
    }
    free(worst);
}

void experts_cut(struct residency *r, size_t n_slots)
{
    for (size_t i = 0; i < r->in.n_units; i++) {
        struct unit *u = &r->units[i];
        unsigned quota = (unsigned)MIN(placement_quota(&r->in, n_slots, i), (size_t)u->n_experts);

        if (quota < u->quota)
            cut_unit(r, u, quota);
    }
}

void experts_grow(struct residency *r, size_t n_slots)
{
    set_quotas(r, n_slots);
}
