/* q2_0 × int8 activations by VNNI; see matvec32_avx512.h. */
#include "backends/cpu/avx512/matvec32_avx512.h"

KERNEL(matvec, q2_0, avx512);

MATVEC32(q2_0)
