/* q2_k weights in panels; see panel_neon.h. */
#include "backends/cpu/dotprod/tier_dotprod.h"

KERNEL(gemm, q2_k, dotprod);

GEMM256(q2_k, dotprod)
