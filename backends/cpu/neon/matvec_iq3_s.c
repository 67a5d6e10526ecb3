/* iq3_s × int8 activations; see matvec_neon.h. */
#include "backends/cpu/neon/matvec_neon.h"

KERNEL(matvec, iq3_s, neon);

MATVEC_UNPACK(iq3_s, false)
