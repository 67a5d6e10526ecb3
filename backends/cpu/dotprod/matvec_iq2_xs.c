/* iq2_xs × int8 activations; see points_neon.h. */
#include "backends/cpu/dotprod/tier_dotprod.h"
#include "backends/cpu/neon/points_neon.h"

KERNEL(matvec, iq2_xs, dotprod);

MATVEC256(iq2_xs, dotprod)
