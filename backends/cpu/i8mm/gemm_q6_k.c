/* q6_k weights in panels; see panel_neon.h. */
#include "backends/cpu/i8mm/tier_i8mm.h"

KERNEL(gemm, q6_k, i8mm);

GEMM256(q6_k, i8mm)
