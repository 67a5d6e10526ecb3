/* tq1_0 × int8 activations; see matvec_neon.h. */
#include "backends/cpu/neon/tier_neon.h"

KERNEL(matvec, tq1_0, neon);

MATVEC256(tq1_0, neon)
