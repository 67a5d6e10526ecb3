/*
 * stop - finds stop strings in a text that comes in pieces.
 *
 * What could still become a stop string is held back; what cannot goes on at
 * once.  The text before a match goes on, the match and what follows never do.
 * Of several matches the one that ends first counts (of those that end
 * together the longest), so that the result does not depend on how the text
 * was cut into tokens.
 *
 * Linear in the text (Knuth, Morris, Pratt 1977).  Thread: ENGINE.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/str.h"

struct stop_filter {
    struct stop_pattern *patterns;
    unsigned n;
    struct str held; /* the longest beginning of a pattern that the text ends in */
    int matched;     /* index of the pattern, −1 none yet */
};

/* What stop_init takes from the heap for patterns of that many bytes together. */
size_t stop_bytes(size_t text_bytes, unsigned n);
/* The texts stay the caller's.  Empty ones match nothing. */
void stop_init(struct stop_filter *f);
void stop_add(struct stop_filter *f, struct view text);
void stop_clear(struct stop_filter *f);
/* Begins a new text with the same patterns. */
void stop_reset(struct stop_filter *f);

/* Appends to out what is certain now.  True: a pattern matched, and nothing more will come out. */
bool stop_feed(struct stop_filter *f, struct view piece, struct str *out);
/* The text has ended: what was held back is certain too. */
void stop_finish(struct stop_filter *f, struct str *out);
