/* q8_0 × int8 activations; see matvec_neon.h. */
#include "backends/cpu/dotprod/tier_dotprod.h"

KERNEL(matvec, q8_0, dotprod);

MATVEC32(q8_0, dotprod)
