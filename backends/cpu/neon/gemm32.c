/* Panels of the formats of 32 weights; see panel_neon.h. */
#include "backends/cpu/neon/tier_neon.h"

void gemm32_neon(const struct gemm *g, const struct blocks32 *f)
{
    gemm32(g, f, &panel_neon);
}
