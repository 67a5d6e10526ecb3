/* iq4_xs weights in panels; see panel_neon.h. */
#include "backends/cpu/neon/tier_neon.h"

KERNEL(gemm, iq4_xs, neon);

GEMM256(iq4_xs, neon)
