/* iq4_xs weights in panels; see panel_neon.h. */
#include "backends/cpu/i8mm/tier_i8mm.h"

KERNEL(gemm, iq4_xs, i8mm);

GEMM256(iq4_xs, i8mm)
