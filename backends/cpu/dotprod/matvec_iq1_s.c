/* iq1_s × int8 activations; see points_neon.h. */
#include "backends/cpu/dotprod/tier_dotprod.h"
#include "backends/cpu/neon/points_neon.h"

KERNEL(matvec, iq1_s, dotprod);

MATVEC256(iq1_s, dotprod)
