/*
 * schedule - which of the waiting works is next.  Pure: plain structs in, an
 * index out.
 *
 * Works of models that are in memory go first, in the order they came: two
 * clients of two models that do not fit together then take turns by batches
 * instead of swapping at every request.  Nobody is passed over more than
 * SCHEDULE_MAX_PASSED times.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define SCHEDULE_MAX_PASSED 4

struct schedule_item {
    bool ready; /* its model is in memory */
    unsigned passed;
};

/* items in the order they came; n ≥ 1. */
size_t schedule_next(const struct schedule_item *items, size_t n);
