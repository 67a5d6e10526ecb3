/* iq4_xs × int8 activations; see matvec_neon.h. */
#include "backends/cpu/neon/tier_neon.h"

KERNEL(matvec, iq4_xs, neon);

MATVEC256(iq4_xs, neon)
