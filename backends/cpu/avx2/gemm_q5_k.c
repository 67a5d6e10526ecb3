/* q5_k × many columns by vpmaddwd; see panel_avx2.h. */
#include "backends/cpu/avx2/decode_avx2.h"

KERNEL(gemm, q5_k, avx2);

GEMM256(q5_k, true)
