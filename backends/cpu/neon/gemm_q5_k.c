/* q5_k weights in panels; see panel_neon.h. */
#include "backends/cpu/neon/tier_neon.h"

KERNEL(gemm, q5_k, neon);

GEMM256(q5_k, neon)
