/* iq1_s × int8 activations; see matvec_neon.h. */
#include "backends/cpu/neon/matvec_neon.h"

KERNEL(matvec, iq1_s, neon);

MATVEC_UNPACK(iq1_s, false)
