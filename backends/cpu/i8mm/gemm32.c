/* Panels of the formats of 32 weights; see panel_neon.h. */
#include "backends/cpu/i8mm/tier_i8mm.h"

void gemm32_i8mm(const struct gemm *g, const struct blocks32 *f)
{
    gemm32(g, f, &panel_i8mm);
}
