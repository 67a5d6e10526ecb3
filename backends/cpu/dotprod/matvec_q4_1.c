/* q4_1 × int8 activations; see matvec_neon.h. */
#include "backends/cpu/dotprod/tier_dotprod.h"

KERNEL(matvec, q4_1, dotprod);

MATVEC32(q4_1, dotprod)
