/* iq1_s × int8 activations; see points_neon.h. */
#include "backends/cpu/neon/points_neon.h"
#include "backends/cpu/neon/tier_neon.h"

KERNEL(matvec, iq1_s, neon);

MATVEC256(iq1_s, neon)
