/* q3_k × int8 activations; see matvec_neon.h. */
#include "backends/cpu/neon/tier_neon.h"

KERNEL(matvec, q3_k, neon);

MATVEC256(q3_k, neon)
