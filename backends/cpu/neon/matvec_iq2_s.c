/* iq2_s × int8 activations; see matvec_neon.h. */
#include "backends/cpu/neon/matvec_neon.h"

KERNEL(matvec, iq2_s, neon);

MATVEC_UNPACK(iq2_s, false)
