/* q6_k weights in panels; see panel_neon.h. */
#include "backends/cpu/dotprod/tier_dotprod.h"

KERNEL(gemm, q6_k, dotprod);

GEMM256(q6_k, dotprod)
