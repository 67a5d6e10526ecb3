/* tq2_0 × int8 activations; see matvec_neon.h. */
#include "backends/cpu/dotprod/tier_dotprod.h"

KERNEL(matvec, tq2_0, dotprod);

MATVEC256(tq2_0, dotprod)
