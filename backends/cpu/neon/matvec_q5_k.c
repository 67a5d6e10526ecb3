/* q5_k × int8 activations; see matvec_neon.h. */
#include "backends/cpu/neon/tier_neon.h"

KERNEL(matvec, q5_k, neon);

MATVEC256(q5_k, neon)
