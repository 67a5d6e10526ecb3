/* iq2_xs × int8 activations; see points_neon.h. */
#include "backends/cpu/neon/points_neon.h"
#include "backends/cpu/neon/tier_neon.h"

KERNEL(matvec, iq2_xs, neon);

MATVEC256(iq2_xs, neon)
