/* q6_k × int8 activations; see matvec_neon.h. */
#include "backends/cpu/neon/tier_neon.h"

KERNEL(matvec, q6_k, neon);

MATVEC256(q6_k, neon)
