/* iq1_m × int8 activations; see matvec_neon.h. */
#include "backends/cpu/neon/matvec_neon.h"

KERNEL(matvec, iq1_m, neon);

MATVEC_UNPACK(iq1_m, false)
