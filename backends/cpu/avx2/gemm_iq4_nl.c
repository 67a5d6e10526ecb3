/* iq4_nl × many columns by vpmaddwd; see panel_avx2.h. */
#include "backends/cpu/avx2/decode_avx2.h"

KERNEL(gemm, iq4_nl, avx2);

GEMM32(iq4_nl, false)
