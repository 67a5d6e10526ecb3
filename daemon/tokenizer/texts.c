/* Byte strings by id and ids by byte string; see tokenizer_priv.h. */
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/hash.h"
#include "daemon/tokenizer/tokenizer_priv.h"

static size_t slots_for(size_t n)
{
    size_t slots = 16;

    while (slots / 4 * 3 < n)
        slots *= 2;
    return slots;
}

/* An array that grows to that many has up to half as many again. */
size_t texts_bytes_for(size_t n, size_t bytes)
{
    return bytes + bytes / 2 + 16 + (n + n / 2 + 16) * sizeof(uint32_t) +
           slots_for(n) * sizeof(uint32_t);
}

size_t texts_bytes_to_add(const struct texts *t, size_t bytes)
{
    bool pool = t->pool_len + bytes + 1 > t->pool_cap, at = t->n + 2 > t->at_cap;
    size_t more = t->n_slots / 4 * 3 <= t->n ? 2 * t->n_slots * sizeof *t->slots : 0;

    return more + (pool ? 2 * (t->pool_cap + bytes + 16) : 0) +
           (at ? 2 * (t->at_cap + 16) * sizeof *t->at : 0);
}

void texts_init(struct texts *t, size_t expect, size_t bytes)
{
    *t = (struct texts){.n_slots = slots_for(expect)};
    t->seed = (uint64_t)(uintptr_t)t;
    t->slots = XNEW_ARRAY(uint32_t, t->n_slots);
    ARRAY_GROW(t->at, expect + 2, t->at_cap);
    ARRAY_GROW(t->pool, bytes + 1, t->pool_cap);
    t->at[0] = 0;
}

void texts_clear(struct texts *t)
{
    free(t->pool);
    free(t->at);
    free(t->slots);
    *t = (struct texts){0};
}

struct view texts_at(const struct texts *t, size_t id)
{
    return (struct view){t->pool + t->at[id], t->at[id + 1] - t->at[id]};
}

/* The slot where text is, or where it would go. */
static size_t slot_of(const struct texts *t, struct view text)
{
    size_t mask = t->n_slots - 1;
    size_t i = hash_bytes_seed(text.p, text.len, t->seed) & mask;

    while (t->slots[i] && !view_eq(texts_at(t, t->slots[i] - 1), text))
        i = (i + 1) & mask;
    return i;
}

int32_t texts_find(const struct texts *t, struct view text)
{
    return (int32_t)t->slots[slot_of(t, text)] - 1;
}

void texts_add_hidden(struct texts *t, struct view text)
{
    ARRAY_GROW(t->pool, t->pool_len + text.len + 1, t->pool_cap);
    if (text.len)
        memcpy(t->pool + t->pool_len, text.p, text.len);
    t->pool_len += text.len;
    ARRAY_GROW(t->at, t->n + 2, t->at_cap);
    t->at[++t->n] = (uint32_t)t->pool_len;
}

/* Hidden texts are in no slot, so the slots are filled again from the old ones, not from the texts. */
static void grow_slots(struct texts *t)
{
    struct texts bigger = *t;

    bigger.n_slots = t->n_slots * 2;
    bigger.slots = XNEW_ARRAY(uint32_t, bigger.n_slots);
    for (size_t i = 0; i < t->n_slots; i++)
        if (t->slots[i])
            bigger.slots[slot_of(&bigger, texts_at(t, t->slots[i] - 1))] = t->slots[i];
    free(t->slots);
    *t = bigger;
}

bool texts_add(struct texts *t, struct view text)
{
    size_t slot;

    if (t->n_slots / 4 * 3 <= t->n)
        grow_slots(t);
    slot = slot_of(t, text);
    if (t->slots[slot])
        return false;
    texts_add_hidden(t, text);
    t->slots[slot] = (uint32_t)t->n;
    return true;
}

void texts_shrink(struct texts *t)
{
    t->pool = xrealloc(t->pool, t->pool_len + 1);
    t->pool_cap = t->pool_len + 1;
    t->at = xreallocarray(t->at, t->n + 1, sizeof *t->at);
    t->at_cap = t->n + 1;
}

size_t texts_bytes(const struct texts *t)
{
    return t->pool_cap + t->at_cap * sizeof *t->at + t->n_slots * sizeof *t->slots;
}
