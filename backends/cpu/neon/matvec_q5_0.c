/* q5_0 × int8 activations; see matvec_neon.h. */
#include "backends/cpu/neon/tier_neon.h"

KERNEL(matvec, q5_0, neon);

MATVEC32(q5_0, neon)
