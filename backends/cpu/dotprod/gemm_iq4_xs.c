/* iq4_xs weights in panels; see panel_neon.h. */
#include "backends/cpu/dotprod/tier_dotprod.h"

KERNEL(gemm, iq4_xs, dotprod);

GEMM256(iq4_xs, dotprod)
