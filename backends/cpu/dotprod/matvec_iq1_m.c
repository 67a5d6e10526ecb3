/* iq1_m × int8 activations; see points_neon.h. */
#include "backends/cpu/dotprod/tier_dotprod.h"
#include "backends/cpu/neon/points_neon.h"

KERNEL(matvec, iq1_m, dotprod);

MATVEC256(iq1_m, dotprod)
