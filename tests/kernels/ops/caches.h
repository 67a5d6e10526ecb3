/*
 * caches - KV caches of beds: as op.h lays them out, with what a reader of
 * places that were never stored would notice.
 */
#pragma once

#include "tests/kernels/ops/bed.h"

/* All of it is half a NaN of f16. */
struct tensor bed_cache(struct bed *b, const struct format *f, size_t dim, size_t heads,
                        size_t chunks);
void *bed_slot(const struct tensor *t, size_t head, size_t pos);
/* Random keys at the last positions before end that the cache holds. */
void bed_fill_cache(const struct tensor *t, size_t end);
