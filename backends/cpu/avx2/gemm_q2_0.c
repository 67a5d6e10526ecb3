/* q2_0 × many columns by vpmaddwd; see panel_avx2.h. */
#include "backends/cpu/avx2/decode_avx2.h"

KERNEL(gemm, q2_0, avx2);

GEMM32(q2_0, false)
