/* mxfp4 weights in panels; see panel_neon.h. */
#include "backends/cpu/dotprod/tier_dotprod.h"

KERNEL(gemm, mxfp4, dotprod);

GEMM32(mxfp4, dotprod)
