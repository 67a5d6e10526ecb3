/* iq2_s × many columns by VNNI; see panel_avx512.h. */
#include "backends/cpu/avx512/decode_avx512.h"

KERNEL(gemm, iq2_s, avx512);

GEMM256_POINTS(iq2_s, block_magnitudes, half_at(w) * 0.125f)
