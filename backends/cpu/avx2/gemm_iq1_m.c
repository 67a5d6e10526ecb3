/* iq1_m × many columns by vpmaddwd; see panel_avx2.h. */
#include "backends/cpu/avx2/decode_avx2.h"

KERNEL(gemm, iq1_m, avx2);

GEMM256_POINTS(iq1_m, f16_to_f32(points_half_iq1_m(w)) * 0.125f)
