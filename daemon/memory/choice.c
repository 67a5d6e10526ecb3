/*
 * What batches choose: for the policy, the curve and a recorder, whether experts
 * come in slots or all of them are there.  See residency.h.
 */

#include <assert.h>
#include <string.h>

#include "common/alloc.h"
#include "daemon/memory/curve.h"
#include "daemon/memory/residency_priv.h"

/* The different experts of a batch, ascending, and how many rows want each. */
static void gather(struct choice *c, const struct residency_choice *want)
{
    const struct unit *u = c->unit;

    memset(c->count, 0, u->n_experts * sizeof *c->count);
    for (size_t row = 0; row < want->rows; row++)
        for (unsigned k = 0; k < want->n_used; k++)
            c->count[want->ids[row * want->stride + k]]++;
    c->n = 0;
    for (uint32_t e = 0; e < u->n_experts; e++)
        if (c->count[e])
            c->ids[c->n++] = e;
}

/* True: with this layer a token begins, or a chunk. */
static bool pass(struct residency *r, const struct residency_choice *want)
{
    size_t unit = r->items[want->parts[0]].unit;
    bool turn = r->last_unit == SIZE_MAX || unit <= r->last_unit;

    r->passed += turn;
    r->last_unit = unit;
    return turn;
}

/* A choice to be noted. */
static void begin(struct residency *r, const struct residency_choice *want, bool turn)
{
    struct choice *c = &r->choice;

    assert(!c->unit);
    c->unit = &r->units[r->items[want->parts[0]].unit];
    c->decode = want->decode;
    if (turn) {
        if (r->trace)
            trace_writer_token(r->trace, !r->last_decode, NULL);
        r->token++;
    }
    r->last_decode = c->decode;
    gather(c, want);
}

bool choice_begin(struct residency *r, const struct residency_choice *want)
{
    bool turn = pass(r, want);

    begin(r, want, turn);
    return turn;
}

void choice_note(struct residency *r, size_t rows)
{
    struct choice *c = &r->choice;
    struct unit *u = c->unit;
    unsigned unit = (unsigned)(u - r->units);
    const int32_t *ids = (const int32_t *)c->ids; /* below 2^31 by far */

    for (size_t i = 0; i < c->n; i++) {
        uint32_t e = c->ids[i];

        u->told[e].last_use = r->passed;
        if (c->decode)
            policy_use(&u->experts[e], r->token);
        else
            policy_use_prefill(&u->experts[e], r->token, (double)c->count[e] / (double)rows);
    }
    if (c->decode)
        curve_note(r->curve, unit, u->experts, ids, (unsigned)c->n, r->token, r->whole);
    if (r->trace)
        trace_writer_layer(r->trace, unit, ids, (unsigned)MIN(c->n, (size_t)r->n_used));
}

int choice_end_trace(struct residency *r, struct err *err)
{
    struct trace_writer *t = r->trace;

    if (!t)
        return 0;
    r->trace = NULL;
    trace_writer_token(t, !r->last_decode, NULL);
    return trace_writer_close(t, err);
}

bool residency_is_watched(const struct residency *r, extent_id id)
{
    return r->whole && r->items[id].kind == ITEM_SLICES;
}

/* Neighbours in a spell, for what the last token used counts most. */
static bool is_due(struct residency *r, const struct residency_choice *want, bool turn)
{
    if (!want->decode || r->trace)
        return true;
    r->watched_tokens += turn;
    return r->watched_tokens % RESIDENCY_WATCH_EVERY < RESIDENCY_WATCH_TOKENS;
}

void residency_note(struct residency *r, const struct residency_choice *want)
{
    bool turn = pass(r, want);

    if (!is_due(r, want, turn))
        return;
    begin(r, want, turn);
    choice_note(r, want->rows);
    r->choice.unit = NULL;
}
