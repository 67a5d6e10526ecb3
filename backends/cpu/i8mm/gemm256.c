/* Panels of the formats of 256 weights; see panel_neon.h. */
#include "backends/cpu/i8mm/tier_i8mm.h"

void gemm256_i8mm(const struct gemm *g, const struct blocks256 *f)
{
    gemm256(g, f, &panel_i8mm);
}
