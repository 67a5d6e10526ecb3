/* iq4_xs × many columns by vpmaddwd; see panel_avx2.h. */
#include "backends/cpu/avx2/decode_avx2.h"

KERNEL(gemm, iq4_xs, avx2);

GEMM256(iq4_xs, false)
