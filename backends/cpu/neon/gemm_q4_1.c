/* q4_1 weights in panels; see panel_neon.h. */
#include "backends/cpu/neon/tier_neon.h"

KERNEL(gemm, q4_1, neon);

GEMM32(q4_1, neon)
