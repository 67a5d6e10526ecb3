/* mxfp4 × int8 activations by VNNI; see matvec32_avx512.h. */
#include "backends/cpu/avx512/matvec32_avx512.h"

KERNEL(matvec, mxfp4, avx512);

MATVEC32(mxfp4)
