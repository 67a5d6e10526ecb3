/* iq3_xxs × many columns by VNNI; see panel_avx512.h. */
#include "backends/cpu/avx512/decode_avx512.h"

KERNEL(gemm, iq3_xxs, avx512);

GEMM256_UNPACK(iq3_xxs)
