/*
 * ledger - one book for every byte that grows with a model, a context or a
 * request.
 *
 * A pool is a kind of memory (host RAM; one per device later) with a budget;
 * an account says what the bytes are for.  Everything is reserved BEFORE it is
 * allocated, in the allocation's true size (alloc_page_round, alignment,
 * guard), and the sum of a pool never passes its budget.  A refusal is
 * ERR_NOMEM whose sentence names who asked and how much was missing, and whose
 * data is the sum per account: {"pool","budget","used","free","wanted","for",
 * "accounts":{…}}.
 *
 * Any thread (a leaf lock inside).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

struct ledger;

enum pool { POOL_RAM, POOL_COUNT };

enum account {
    ACCOUNT_WEIGHTS, /* pinned weights */
    ACCOUNT_CACHE,   /* weights that may be evicted */
    ACCOUNT_STAGING, /* I/O buffers */
    ACCOUNT_KV,
    ACCOUNT_STATE, /* recurrent state */
    ACCOUNT_SCRATCH,
    ACCOUNT_SNAPSHOTS,
    ACCOUNT_TEXT, /* metadata, tokenizer, templates, grammars */
    ACCOUNT_REQUESTS,
    ACCOUNT_COUNT
};

struct ledger *ledger_create(void);
void ledger_destroy(struct ledger *l); /* asserts in debug builds that all is released */

/*
 * bytes = what the machine or its cgroup has: a budget above it is refused, and one that is above
 * becomes that, or what is in use where that is more: it goes down with what is released, and
 * nothing is reserved until it is there.
 */
void ledger_set_capacity(struct ledger *l, enum pool pool, size_t bytes);
/* A budget below what is in use is ERR_CONFLICT that names the sum, and nothing changes. */
int ledger_set_budget(struct ledger *l, enum pool pool, size_t bytes, struct err *err);
size_t ledger_budget(const struct ledger *l, enum pool pool);
size_t ledger_capacity(const struct ledger *l, enum pool pool);

/* who: for the sentence and the report ("model smol", "request 12"). */
int ledger_reserve(struct ledger *l, enum pool pool, enum account account, size_t bytes,
                   const char *who, struct err *err);
void ledger_release(struct ledger *l, enum pool pool, enum account account, size_t bytes);
size_t ledger_used(const struct ledger *l, enum pool pool);
size_t ledger_free_bytes(const struct ledger *l, enum pool pool);

struct ledger_report {
    size_t capacity;
    size_t budget;
    size_t used;
    size_t peak; /* highest sum since start */
    size_t accounts[ACCOUNT_COUNT];
    size_t account_peaks[ACCOUNT_COUNT];
    size_t refused; /* how many reservations were */
};
void ledger_report(const struct ledger *l, enum pool pool, struct ledger_report *ret);

const char *ledger_pool_name(enum pool pool);          /* "ram" */
const char *ledger_account_name(enum account account); /* "weights" */

/* Fault injection: after n more reservations that succeed, every one is refused; −1 turns it off. */
void ledger_refuse_after(struct ledger *l, long n);
