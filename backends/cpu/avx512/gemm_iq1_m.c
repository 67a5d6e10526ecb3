/* iq1_m × many columns by VNNI; see panel_avx512.h. */
#include "backends/cpu/avx512/decode_avx512.h"

KERNEL(gemm, iq1_m, avx512);

GEMM256_UNPACK(iq1_m)
