/* q2_k × int8 activations; see matvec_neon.h. */
#include "backends/cpu/neon/tier_neon.h"

KERNEL(matvec, q2_k, neon);

MATVEC256(q2_k, neon)
