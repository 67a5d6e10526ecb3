/* iq1_m × int8 activations; see points_neon.h. */
#include "backends/cpu/neon/points_neon.h"
#include "backends/cpu/neon/tier_neon.h"

KERNEL(matvec, iq1_m, neon);

MATVEC256(iq1_m, neon)
