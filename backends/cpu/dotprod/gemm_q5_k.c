/* q5_k weights in panels; see panel_neon.h. */
#include "backends/cpu/dotprod/tier_dotprod.h"

KERNEL(gemm, q5_k, dotprod);

GEMM256(q5_k, dotprod)
