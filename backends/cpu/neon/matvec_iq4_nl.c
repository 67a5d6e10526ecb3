/* iq4_nl × int8 activations; see matvec_neon.h. */
#include "backends/cpu/neon/tier_neon.h"

KERNEL(matvec, iq4_nl, neon);

MATVEC32(iq4_nl, neon)
