/* q5_k × int8 activations; see matvec_neon.h. */
#include "backends/cpu/dotprod/tier_dotprod.h"

KERNEL(matvec, q5_k, dotprod);

MATVEC256(q5_k, dotprod)
