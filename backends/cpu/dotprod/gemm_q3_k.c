/* q3_k weights in panels; see panel_neon.h. */
#include "backends/cpu/dotprod/tier_dotprod.h"

KERNEL(gemm, q3_k, dotprod);

GEMM256(q3_k, dotprod)
