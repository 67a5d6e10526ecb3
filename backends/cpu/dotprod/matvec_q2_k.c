/* q2_k × int8 activations; see matvec_neon.h. */
#include "backends/cpu/dotprod/tier_dotprod.h"

KERNEL(matvec, q2_k, dotprod);

MATVEC256(q2_k, dotprod)
