/* iq4_nl weights in panels; see panel_neon.h. */
#include "backends/cpu/dotprod/tier_dotprod.h"

KERNEL(gemm, iq4_nl, dotprod);

GEMM32(iq4_nl, dotprod)
