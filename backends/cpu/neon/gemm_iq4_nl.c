/* iq4_nl weights in panels; see panel_neon.h. */
#include "backends/cpu/neon/tier_neon.h"

KERNEL(gemm, iq4_nl, neon);

GEMM32(iq4_nl, neon)
