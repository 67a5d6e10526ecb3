/* iq2_xxs × int8 activations; see matvec_neon.h. */
#include "backends/cpu/neon/matvec_neon.h"

KERNEL(matvec, iq2_xxs, neon);

MATVEC_UNPACK(iq2_xxs, false)
