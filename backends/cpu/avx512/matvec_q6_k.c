/* q6_k × int8 activations by VNNI; see matvec256_avx512.h. */
#include "backends/cpu/avx512/matvec256_avx512.h"

KERNEL(matvec, q6_k, avx512);

MATVEC256(q6_k)
