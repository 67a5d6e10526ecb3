/* iq1_s × many columns by VNNI; see panel_avx512.h. */
#include "backends/cpu/avx512/decode_avx512.h"

KERNEL(gemm, iq1_s, avx512);

GEMM256_POINTS(iq1_s, block_ternary, half_at(w) * 0.125f)
