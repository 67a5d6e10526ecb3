/* tq2_0 weights in panels; see panel_neon.h. */
#include "backends/cpu/neon/tier_neon.h"

KERNEL(gemm, tq2_0, neon);

GEMM256(tq2_0, neon)
