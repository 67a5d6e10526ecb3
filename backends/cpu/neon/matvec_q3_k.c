/* q3_k × int8 activations; see matvec_neon.h. */
#include "backends/cpu/neon/matvec_neon.h"

KERNEL(matvec, q3_k, neon);

MATVEC_UNPACK(q3_k, false)
