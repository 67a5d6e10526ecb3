/* iq3_s × int8 activations; see points_neon.h. */
#include "backends/cpu/dotprod/tier_dotprod.h"
#include "backends/cpu/neon/points_neon.h"

KERNEL(matvec, iq3_s, dotprod);

MATVEC256(iq3_s, dotprod)
