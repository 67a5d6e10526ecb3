/*
 * attn_panel - the order in which elements of keys lie in a panel.
 *
 * A panel holds ATTN_PANEL keys with the keys side by side, so that a lane is a
 * key and a score needs no sum across lanes.  Its sixteen partial sums by index
 * mod 16 come one after the other then, in the order in which kernels_tree16()
 * adds them up: 0, 8 (their sum), 4, 12 (their sum; the sum of both) …, so that
 * four of them at most wait.  That order is the turn; it is its own inverse.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

static const uint8_t attn_turn[16] = {0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15};

/* Terms of a partial sum, at most: rows of a panel that belong to one. */
static inline size_t attn_steps(size_t head_dim)
{
    return (head_dim + 15) / 16;
}
