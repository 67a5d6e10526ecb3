/* iq2_xs × int8 activations; see matvec_neon.h. */
#include "backends/cpu/neon/matvec_neon.h"

KERNEL(matvec, iq2_xs, neon);

MATVEC_UNPACK(iq2_xs, false)
