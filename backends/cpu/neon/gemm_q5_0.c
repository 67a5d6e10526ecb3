/* q5_0 weights in panels; see panel_neon.h. */
#include "backends/cpu/neon/tier_neon.h"

KERNEL(gemm, q5_0, neon);

GEMM32(q5_0, neon)
