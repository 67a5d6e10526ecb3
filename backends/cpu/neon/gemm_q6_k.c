/* q6_k weights in panels; see panel_neon.h. */
#include "backends/cpu/neon/tier_neon.h"

KERNEL(gemm, q6_k, neon);

GEMM256(q6_k, neon)
