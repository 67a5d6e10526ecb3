/* mxfp4 × int8 activations; see matvec_neon.h. */
#include "backends/cpu/dotprod/tier_dotprod.h"

KERNEL(matvec, mxfp4, dotprod);

MATVEC32(mxfp4, dotprod)
