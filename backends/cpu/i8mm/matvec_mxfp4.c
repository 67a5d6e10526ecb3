/* mxfp4 × int8 activations; see tier_i8mm.h. */
#include "backends/cpu/i8mm/tier_i8mm.h"

KERNEL(matvec, mxfp4, i8mm);

NARROW32(mxfp4)
