/* q5_0 × many columns by VNNI; see panel_avx512.h. */
#include "backends/cpu/avx512/decode_avx512.h"

KERNEL(gemm, q5_0, avx512);

GEMM32(q5_0, false)
