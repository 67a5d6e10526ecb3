/* iq4_xs × int8 activations; see matvec_neon.h. */
#include "backends/cpu/dotprod/tier_dotprod.h"

KERNEL(matvec, iq4_xs, dotprod);

MATVEC256(iq4_xs, dotprod)
