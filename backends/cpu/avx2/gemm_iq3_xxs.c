/* iq3_xxs × many columns by vpmaddwd; see panel_avx2.h. */
#include "backends/cpu/avx2/decode_avx2.h"

KERNEL(gemm, iq3_xxs, avx2);

GEMM256_UNPACK(iq3_xxs)
