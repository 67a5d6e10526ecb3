/* iq3_xxs × many columns by vpmaddwd; see panel_avx2.h. */
#include "backends/cpu/avx2/decode_avx2.h"

KERNEL(gemm, iq3_xxs, avx2);

GEMM256_POINTS(iq3_xxs, half_at(w) * 0.25f)
