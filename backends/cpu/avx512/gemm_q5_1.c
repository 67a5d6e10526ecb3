/* q5_1 × many columns by VNNI; see panel_avx512.h. */
#include "backends/cpu/avx512/decode_avx512.h"

KERNEL(gemm, q5_1, avx512);

GEMM32(q5_1, true)
