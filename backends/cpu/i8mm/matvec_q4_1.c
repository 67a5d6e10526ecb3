/* q4_1 × int8 activations; see tier_i8mm.h. */
#include "backends/cpu/i8mm/tier_i8mm.h"

KERNEL(matvec, q4_1, i8mm);

NARROW32(q4_1)
