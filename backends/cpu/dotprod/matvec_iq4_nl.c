/* iq4_nl × int8 activations; see matvec_neon.h. */
#include "backends/cpu/dotprod/tier_dotprod.h"

KERNEL(matvec, iq4_nl, dotprod);

MATVEC32(iq4_nl, dotprod)
