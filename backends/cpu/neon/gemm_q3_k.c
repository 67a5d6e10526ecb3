/* q3_k weights in panels; see panel_neon.h. */
#include "backends/cpu/neon/tier_neon.h"

KERNEL(gemm, q3_k, neon);

GEMM256(q3_k, neon)
