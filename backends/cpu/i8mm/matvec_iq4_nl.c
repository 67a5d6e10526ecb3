/* iq4_nl × int8 activations; see tier_i8mm.h. */
#include "backends/cpu/i8mm/tier_i8mm.h"

KERNEL(matvec, iq4_nl, i8mm);

NARROW32(iq4_nl)
