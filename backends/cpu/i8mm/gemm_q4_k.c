/* q4_k weights in panels; see panel_neon.h. */
#include "backends/cpu/i8mm/tier_i8mm.h"

KERNEL(gemm, q4_k, i8mm);

GEMM256(q4_k, i8mm)
