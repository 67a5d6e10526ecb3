/* Panels of the formats of 256 weights; see panel_neon.h. */
#include "backends/cpu/neon/tier_neon.h"

void gemm256_neon(const struct gemm *g, const struct blocks256 *f)
{
    gemm256(g, f, &panel_neon);
}
