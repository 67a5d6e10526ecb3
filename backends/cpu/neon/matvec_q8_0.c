/* q8_0 × int8 activations; see matvec_neon.h. */
#include "backends/cpu/neon/tier_neon.h"

KERNEL(matvec, q8_0, neon);

MATVEC32(q8_0, neon)
