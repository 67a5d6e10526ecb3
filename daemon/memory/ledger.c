/* The book: one mutex, one row per pool.  See ledger.h. */

#include "daemon/memory/ledger.h"

#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/alloc.h"
#include "common/str.h"
#include "common/units.h"

struct book {
    size_t capacity;
    size_t budget;
    size_t used;
    size_t peak;
    size_t refused;
    size_t accounts[ACCOUNT_COUNT];
    size_t account_peaks[ACCOUNT_COUNT];
};

struct ledger {
    pthread_mutex_t lock;
    struct book pools[POOL_COUNT];
    long refuse_after; /* −1: never */
};

static const char *const pool_names[POOL_COUNT] = {"ram"};
static const char *const account_names[ACCOUNT_COUNT] = {
    "weights", "cache", "staging", "kv", "state", "scratch", "snapshots", "text", "requests"};

const char *ledger_pool_name(enum pool pool)
{
    return pool_names[pool];
}

const char *ledger_account_name(enum account account)
{
    return account_names[account];
}

struct ledger *ledger_create(void)
{
    struct ledger *l = XNEW(struct ledger);

    pthread_mutex_init(&l->lock, NULL);
    l->refuse_after = -1;
    for (int i = 0; i < POOL_COUNT; i++)
        l->pools[i].capacity = l->pools[i].budget = SIZE_MAX;
    return l;
}

void ledger_destroy(struct ledger *l)
{
    if (!l)
        return;
    for (int i = 0; i < POOL_COUNT; i++)
        assert(l->pools[i].used == 0);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

/* To what there is, as far as less is not in use. */
static void cut_budget(struct book *b)
{
    if (b->budget > b->capacity)
        b->budget = MAX(b->capacity, b->used);
}

void ledger_set_capacity(struct ledger *l, enum pool pool, size_t bytes)
{
    pthread_mutex_lock(&l->lock);
    l->pools[pool].capacity = bytes;
    cut_budget(&l->pools[pool]);
    pthread_mutex_unlock(&l->lock);
}

/* {"pool":…,"accounts":{…}} of a book; wanted 0 leaves wanted and for out. */
static void write_data(struct err *err, const struct book *b, enum pool pool, size_t wanted,
                       const char *who)
{
    struct str s = {0};

    if (!err)
        return;
    str_addf(&s, "{\"pool\":\"%s\",\"budget\":%zu,\"used\":%zu,\"free\":%zu", pool_names[pool],
             b->budget, b->used, b->budget - b->used);
    if (wanted) {
        str_addf(&s, ",\"wanted\":%zu,\"for\":\"", wanted);
        for (const char *p = who; *p;
             p++) /* a model's name is printable, but a quote may be in it */
            if (*p != '"' && *p != '\\' && (unsigned char)*p >= 0x20)
                str_addc(&s, *p);
        str_addc(&s, '"');
    }
    str_adds(&s, ",\"accounts\":{");
    for (int i = 0; i < ACCOUNT_COUNT; i++)
        str_addf(&s, "%s\"%s\":%zu", i ? "," : "", account_names[i], b->accounts[i]);
    str_adds(&s, "}}");
    if (s.len < sizeof err->data)
        snprintf(err->data, sizeof err->data, "%s", str_text(&s));
    str_clear(&s);
}

int ledger_set_budget(struct ledger *l, enum pool pool, size_t bytes, struct err *err)
{
    struct book *b = &l->pools[pool];
    char want[24], have[24];
    int r = 0;

    pthread_mutex_lock(&l->lock);
    units_format_size(bytes, want, sizeof want);
    if (bytes > b->capacity) {
        r = err_set(err, ERR_INVALID,
                    "a budget of %s is more than the %s of %s that this machine has", want,
                    units_format_size(b->capacity, have, sizeof have), pool_names[pool]);
    } else if (bytes < b->used) {
        r = err_set(err, ERR_CONFLICT,
                    "a budget of %s is below the %s in use; unload a model or choose at least that",
                    want, units_format_size_up(b->used, have, sizeof have));
        write_data(err, b, pool, 0, "");
    } else {
        b->budget = bytes;
    }
    pthread_mutex_unlock(&l->lock);
    return r;
}

int ledger_reserve(struct ledger *l, enum pool pool, enum account account, size_t bytes,
                   const char *who, struct err *err)
{
    struct book *b = &l->pools[pool];
    char want[24], left[24], budget[24];
    bool refuse;
    int r = 0;

    pthread_mutex_lock(&l->lock);
    refuse = bytes > b->budget - b->used;
    if (bytes && l->refuse_after == 0)
        refuse = true;
    else if (bytes && !refuse && l->refuse_after > 0)
        l->refuse_after--;
    if (refuse) {
        b->refused++;
        r = err_set(err, ERR_NOMEM,
                    "%s needs %s for %s, but only %s of the %s budget are free; "
                    "unload a model, use a smaller context or raise the budget",
                    who, units_format_size_up(bytes, want, sizeof want), account_names[account],
                    units_format_size(b->budget - b->used, left, sizeof left),
                    units_format_size(b->budget, budget, sizeof budget));
        write_data(err, b, pool, bytes, who);
    } else {
        b->used += bytes;
        b->accounts[account] += bytes;
        b->peak = MAX(b->peak, b->used);
        b->account_peaks[account] = MAX(b->account_peaks[account], b->accounts[account]);
    }
    pthread_mutex_unlock(&l->lock);
    return r;
}

void ledger_release(struct ledger *l, enum pool pool, enum account account, size_t bytes)
{
    struct book *b = &l->pools[pool];

    pthread_mutex_lock(&l->lock);
    assert(b->accounts[account] >= bytes && b->used >= bytes);
    b->accounts[account] -= bytes;
    b->used -= bytes;
    cut_budget(b);
    pthread_mutex_unlock(&l->lock);
}

/* Reads one number under the lock; the lock is no part of what const promises. */
static size_t read_field(const struct ledger *l, const size_t *field)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)(uintptr_t)&l->lock;
    size_t v;

    pthread_mutex_lock(lock);
    v = *field;
    pthread_mutex_unlock(lock);
    return v;
}

size_t ledger_budget(const struct ledger *l, enum pool pool)
{
    return read_field(l, &l->pools[pool].budget);
}

size_t ledger_capacity(const struct ledger *l, enum pool pool)
{
    return read_field(l, &l->pools[pool].capacity);
}

size_t ledger_used(const struct ledger *l, enum pool pool)
{
    return read_field(l, &l->pools[pool].used);
}

size_t ledger_free_bytes(const struct ledger *l, enum pool pool)
{
    struct ledger_report r;

    ledger_report(l, pool, &r);
    return r.budget - r.used;
}

void ledger_report(const struct ledger *l, enum pool pool, struct ledger_report *ret)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)(uintptr_t)&l->lock;
    const struct book *b = &l->pools[pool];

    pthread_mutex_lock(lock);
    *ret = (struct ledger_report){.capacity = b->capacity,
                                  .budget = b->budget,
                                  .used = b->used,
                                  .peak = b->peak,
                                  .refused = b->refused};
    for (int i = 0; i < ACCOUNT_COUNT; i++) {
        ret->accounts[i] = b->accounts[i];
        ret->account_peaks[i] = b->account_peaks[i];
    }
    pthread_mutex_unlock(lock);
}

void ledger_refuse_after(struct ledger *l, long n)
{
    pthread_mutex_lock(&l->lock);
    l->refuse_after = n;
    pthread_mutex_unlock(&l->lock);
}
