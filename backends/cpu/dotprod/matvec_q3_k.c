/* q3_k × int8 activations; see matvec_neon.h. */
#include "backends/cpu/dotprod/tier_dotprod.h"

KERNEL(matvec, q3_k, dotprod);

MATVEC256(q3_k, dotprod)
