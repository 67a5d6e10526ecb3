/* q5_1 × many columns by vpmaddwd; see panel_avx2.h. */
#include "backends/cpu/avx2/decode_avx2.h"

KERNEL(gemm, q5_1, avx2);

GEMM32(q5_1, true)
