/* iq1_m × many columns by VNNI; see panel_avx512.h. */
#include "backends/cpu/avx512/decode_avx512.h"

KERNEL(gemm, iq1_m, avx512);

GEMM256_POINTS(iq1_m, block_ternary, f16_to_f32(points_half_iq1_m(w)) * 0.125f)
