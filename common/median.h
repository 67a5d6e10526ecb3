/*
 * median - of what was measured, for whatever times something.
 *
 * Any thread.
 */
#pragma once

#include <stddef.h>
#include <stdlib.h>

static inline int median_by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Sorts the n values; of two in the middle, the larger. */
static inline double median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, median_by_value);
    return values[n / 2];
}
