/* q5_0 weights in panels; see panel_neon.h. */
#include "backends/cpu/i8mm/tier_i8mm.h"

KERNEL(gemm, q5_0, i8mm);

GEMM32(q5_0, i8mm)
