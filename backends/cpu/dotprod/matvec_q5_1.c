/* q5_1 × int8 activations; see matvec_neon.h. */
#include "backends/cpu/dotprod/tier_dotprod.h"

KERNEL(matvec, q5_1, dotprod);

MATVEC32(q5_1, dotprod)
