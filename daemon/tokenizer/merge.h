/*
 * merge - joins neighbouring symbols, best pair first, until no pair is left:
 * the common part of byte-pair encoding (best = lowest rank) and of
 * SentencePiece's (best = highest score).
 *
 * Of equal pairs the leftmost is joined first.  A heap holds the pairs, so n
 * symbols cost n log n.  The scratch is reused from word to word,
 * and asked for before it is taken.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct symbol {
    uint32_t at, len; /* in the text; len 0: joined to its left neighbour */
    int32_t prev, next;
    int32_t id; /* the caller's; -1 joins with nothing */
};

struct merge_pair {
    uint64_t key; /* order in the high half, left symbol in the low half: smallest first */
    uint32_t right;
    uint32_t len; /* of both: a pair whose symbols have changed since is dropped */
    int32_t id;
};

struct work;

struct merge {
    struct work *work; /* whom to ask for memory; tokenizer_priv.h */
    struct symbol *symbols;
    size_t n, cap;
    struct merge_pair *heap;
    size_t n_heap, cap_heap;
};

/* Can the two be joined?  Then the order (smaller first) and the id of the whole. */
typedef bool merge_fn(const void *arg, const struct symbol *left, const struct symbol *right,
                      uint32_t *ret_order, int32_t *ret_id);

/* A word of at most n symbols begins; below 0: refused. */
int merge_start(struct merge *m, size_t n);
void merge_add(struct merge *m, uint32_t at, uint32_t len, int32_t id);
/* Below 0: refused, or ended by who is told of its steps. */
int merge_run(struct merge *m, merge_fn *pair, const void *arg);
void merge_clear(struct merge *m);
