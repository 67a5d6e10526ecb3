/* q5_1 weights in panels; see panel_neon.h. */
#include "backends/cpu/neon/tier_neon.h"

KERNEL(gemm, q5_1, neon);

GEMM32(q5_1, neon)
