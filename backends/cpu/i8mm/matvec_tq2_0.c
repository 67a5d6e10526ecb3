/* tq2_0 × int8 activations; see tier_i8mm.h. */
#include "backends/cpu/i8mm/tier_i8mm.h"

KERNEL(matvec, tq2_0, i8mm);

NARROW256(tq2_0)
