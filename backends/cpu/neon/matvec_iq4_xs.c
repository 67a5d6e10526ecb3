/* iq4_xs × int8 activations; see matvec_neon.h. */
#include "backends/cpu/neon/matvec_neon.h"

KERNEL(matvec, iq4_xs, neon);

MATVEC_UNPACK(iq4_xs, false)
