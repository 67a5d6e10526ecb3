/* q4_0 weights in panels; see panel_neon.h. */
#include "backends/cpu/dotprod/tier_dotprod.h"

KERNEL(gemm, q4_0, dotprod);

GEMM32(q4_0, dotprod)
