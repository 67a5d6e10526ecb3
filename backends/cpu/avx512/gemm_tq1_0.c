/* tq1_0 × many columns by VNNI; see panel_avx512.h. */
#include "backends/cpu/avx512/decode_avx512.h"

KERNEL(gemm, tq1_0, avx512);

GEMM256_UNPACK(tq1_0)
