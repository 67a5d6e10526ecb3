/* iq3_s × int8 activations by VNNI; see points_avx512.h and matvec256_avx512.h. */
#include "backends/cpu/avx512/matvec256_avx512.h"
#include "backends/cpu/avx512/points_avx512.h"

KERNEL(matvec, iq3_s, avx512);

MATVEC256(iq3_s)
