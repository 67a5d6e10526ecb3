/* q2_k × int8 activations; see matvec_neon.h. */
#include "backends/cpu/neon/matvec_neon.h"

KERNEL(matvec, q2_k, neon);

MATVEC_UNPACK(q2_k, true)
