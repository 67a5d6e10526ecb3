/*
 * hash - XXH3 of bytes (the xxHash library), for tables and for digests that
 * only have to tell runs of rnbd apart.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t hash_bytes(const void *p, size_t n);
uint64_t hash_bytes_seed(const void *p, size_t n, uint64_t seed); /* chain: seed = hash so far */
