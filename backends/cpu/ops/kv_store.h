/*
 * kv_store - a row of a cache, as KV_STORE and COMPRESS write it.
 */
#pragma once

#include "backends/cpu/cpu.h"

/* row: [heads][dim] as the cache has them; pos: where it goes, round and round in one that is a window. */
void kv_store_row(const struct kernels *k, const float *row, const struct tensor *cache,
                  size_t pos);
