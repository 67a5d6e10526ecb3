/* q4_k weights in panels; see panel_neon.h. */
#include "backends/cpu/dotprod/tier_dotprod.h"

KERNEL(gemm, q4_k, dotprod);

GEMM256(q4_k, dotprod)
