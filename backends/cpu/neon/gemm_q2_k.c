/* q2_k weights in panels; see panel_neon.h. */
#include "backends/cpu/neon/tier_neon.h"

KERNEL(gemm, q2_k, neon);

GEMM256(q2_k, neon)
