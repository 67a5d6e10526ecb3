/* q4_k × int8 activations; see matvec_neon.h. */
#include "backends/cpu/dotprod/tier_dotprod.h"

KERNEL(matvec, q4_k, dotprod);

MATVEC256(q4_k, dotprod)
