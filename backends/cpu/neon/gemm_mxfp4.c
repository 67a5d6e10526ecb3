/* mxfp4 weights in panels; see panel_neon.h. */
#include "backends/cpu/neon/tier_neon.h"

KERNEL(gemm, mxfp4, neon);

GEMM32(mxfp4, neon)
