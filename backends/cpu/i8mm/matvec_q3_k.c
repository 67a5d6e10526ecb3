/* q3_k × int8 activations; see tier_i8mm.h. */
#include "backends/cpu/i8mm/tier_i8mm.h"

KERNEL(matvec, q3_k, i8mm);

NARROW256(q3_k)
