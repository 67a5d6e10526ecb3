/* q4_k × int8 activations; see matvec_neon.h. */
#include "backends/cpu/neon/tier_neon.h"

KERNEL(matvec, q4_k, neon);

MATVEC256(q4_k, neon)
