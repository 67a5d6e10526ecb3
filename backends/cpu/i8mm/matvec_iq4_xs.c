/* iq4_xs × int8 activations; see tier_i8mm.h. */
#include "backends/cpu/i8mm/tier_i8mm.h"

KERNEL(matvec, iq4_xs, i8mm);

NARROW256(iq4_xs)
