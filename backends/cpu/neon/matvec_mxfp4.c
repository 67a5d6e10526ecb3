/* mxfp4 × int8 activations; see matvec_neon.h. */
#include "backends/cpu/neon/tier_neon.h"

KERNEL(matvec, mxfp4, neon);

MATVEC32(mxfp4, neon)
