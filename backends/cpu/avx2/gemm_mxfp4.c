/* mxfp4 × many columns by vpmaddwd; see panel_avx2.h. */
#include "backends/cpu/avx2/decode_avx2.h"

KERNEL(gemm, mxfp4, avx2);

GEMM32(mxfp4, false)
