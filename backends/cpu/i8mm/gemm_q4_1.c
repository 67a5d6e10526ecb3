/* q4_1 weights in panels; see panel_neon.h. */
#include "backends/cpu/i8mm/tier_i8mm.h"

KERNEL(gemm, q4_1, i8mm);

GEMM32(q4_1, i8mm)
