/* q4_1 × int8 activations; see matvec_neon.h. */
#include "backends/cpu/neon/tier_neon.h"

KERNEL(matvec, q4_1, neon);

MATVEC32(q4_1, neon)
