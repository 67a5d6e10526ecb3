/* tq2_0 × many columns by vpmaddwd; see panel_avx2.h. */
#include "backends/cpu/avx2/decode_avx2.h"

KERNEL(gemm, tq2_0, avx2);

GEMM256(tq2_0, false)
