/* Panels of the formats of 32 weights; see panel_neon.h. */
#include "backends/cpu/dotprod/tier_dotprod.h"

void gemm32_dotprod(const struct gemm *g, const struct blocks32 *f)
{
    gemm32(g, f, &panel_dotprod);
}
