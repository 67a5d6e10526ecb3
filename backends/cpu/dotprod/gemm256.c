/* Panels of the formats of 256 weights; see panel_neon.h. */
#include "backends/cpu/dotprod/tier_dotprod.h"

void gemm256_dotprod(const struct gemm *g, const struct blocks256 *f)
{
    gemm256(g, f, &panel_dotprod);
}
