/* tq2_0 × int8 activations; see matvec_neon.h. */
#include "backends/cpu/neon/matvec_neon.h"

KERNEL(matvec, tq2_0, neon);

MATVEC_UNPACK(tq2_0, false)
