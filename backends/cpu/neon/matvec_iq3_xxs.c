/* iq3_xxs × int8 activations; see points_neon.h. */
#include "backends/cpu/neon/points_neon.h"
#include "backends/cpu/neon/tier_neon.h"

KERNEL(matvec, iq3_xxs, neon);

MATVEC256(iq3_xxs, neon)
