/* q5_0 × int8 activations; see tier_i8mm.h. */
#include "backends/cpu/i8mm/tier_i8mm.h"

KERNEL(matvec, q5_0, i8mm);

NARROW32(q5_0)
