/* q1_0 × int8 activations by VNNI; see matvec32_avx512.h. */
#include "backends/cpu/avx512/matvec32_avx512.h"

KERNEL(matvec, q1_0, avx512);

MATVEC32(q1_0)
