/* q4_0 × many columns by VNNI; see panel_avx512.h. */
#include "backends/cpu/avx512/decode_avx512.h"

KERNEL(gemm, q4_0, avx512);

GEMM32(q4_0, false)
