/* tq1_0 × int8 activations; see matvec_neon.h. */
#include "backends/cpu/neon/matvec_neon.h"

KERNEL(matvec, tq1_0, neon);

MATVEC_UNPACK(tq1_0, false)
