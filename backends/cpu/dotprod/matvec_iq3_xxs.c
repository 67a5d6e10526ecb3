/* iq3_xxs × int8 activations; see points_neon.h. */
#include "backends/cpu/dotprod/tier_dotprod.h"
#include "backends/cpu/neon/points_neon.h"

KERNEL(matvec, iq3_xxs, dotprod);

MATVEC256(iq3_xxs, dotprod)
