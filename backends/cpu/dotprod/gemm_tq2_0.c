/* tq2_0 weights in panels; see panel_neon.h. */
#include "backends/cpu/dotprod/tier_dotprod.h"

KERNEL(gemm, tq2_0, dotprod);

GEMM256(tq2_0, dotprod)
