/* iq2_xxs × int8 activations; see points_neon.h. */
#include "backends/cpu/neon/points_neon.h"
#include "backends/cpu/neon/tier_neon.h"

KERNEL(matvec, iq2_xxs, neon);

MATVEC256(iq2_xxs, neon)
