/* tq1_0 × int8 activations by VNNI; see matvec256_avx512.h. */
#include "backends/cpu/avx512/matvec256_avx512.h"

KERNEL(matvec, tq1_0, avx512);

MATVEC256(tq1_0)
