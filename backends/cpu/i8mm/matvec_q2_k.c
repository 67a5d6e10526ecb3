/* q2_k × int8 activations; see tier_i8mm.h. */
#include "backends/cpu/i8mm/tier_i8mm.h"

KERNEL(matvec, q2_k, i8mm);

NARROW256(q2_k)
