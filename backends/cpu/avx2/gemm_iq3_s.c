/* iq3_s × many columns by vpmaddwd; see panel_avx2.h. */
#include "backends/cpu/avx2/decode_avx2.h"

KERNEL(gemm, iq3_s, avx2);

GEMM256_POINTS(iq3_s, half_at(w))
