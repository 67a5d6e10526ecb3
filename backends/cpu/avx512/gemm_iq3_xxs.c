/* iq3_xxs × many columns by VNNI; see panel_avx512.h. */
#include "backends/cpu/avx512/decode_avx512.h"

KERNEL(gemm, iq3_xxs, avx512);

GEMM256_POINTS(iq3_xxs, block_magnitudes, half_at(w) * 0.25f)
