/* tq2_0 weights in panels; see panel_neon.h. */
#include "backends/cpu/i8mm/tier_i8mm.h"

KERNEL(gemm, tq2_0, i8mm);

GEMM256(tq2_0, i8mm)
