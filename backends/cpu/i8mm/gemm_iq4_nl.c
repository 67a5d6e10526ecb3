/* iq4_nl weights in panels; see panel_neon.h. */
#include "backends/cpu/i8mm/tier_i8mm.h"

KERNEL(gemm, iq4_nl, i8mm);

GEMM32(iq4_nl, i8mm)
