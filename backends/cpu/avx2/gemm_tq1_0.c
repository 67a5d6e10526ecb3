/* tq1_0 × many columns by vpmaddwd; see panel_avx2.h. */
#include "backends/cpu/avx2/decode_avx2.h"

KERNEL(gemm, tq1_0, avx2);

GEMM256(tq1_0, false)
