/* iq3_xxs × int8 activations; see matvec_neon.h. */
#include "backends/cpu/neon/matvec_neon.h"

KERNEL(matvec, iq3_xxs, neon);

MATVEC_UNPACK(iq3_xxs, false)
