/* mxfp4 weights in panels; see panel_neon.h. */
#include "backends/cpu/i8mm/tier_i8mm.h"

KERNEL(gemm, mxfp4, i8mm);

GEMM32(mxfp4, i8mm)
