/* q5_1 × int8 activations by VNNI; see matvec32_avx512.h. */
#include "backends/cpu/avx512/matvec32_avx512.h"

KERNEL(matvec, q5_1, avx512);

MATVEC32(q5_1)
