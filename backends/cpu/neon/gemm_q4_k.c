/* q4_k weights in panels; see panel_neon.h. */
#include "backends/cpu/neon/tier_neon.h"

KERNEL(gemm, q4_k, neon);

GEMM256(q4_k, neon)
