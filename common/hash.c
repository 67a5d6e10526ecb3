/* XXH3 from the xxHash library, see hash.h. */
#include <xxhash.h>

#include "common/hash.h"

uint64_t hash_bytes(const void *p, size_t n)
{
    return XXH3_64bits(n ? p : "", n);
}

uint64_t hash_bytes_seed(const void *p, size_t n, uint64_t seed)
{
    return XXH3_64bits_withSeed(n ? p : "", n, seed);
}
