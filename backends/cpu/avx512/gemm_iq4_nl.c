/* iq4_nl × many columns by VNNI; see panel_avx512.h. */
#include "backends/cpu/avx512/decode_avx512.h"

KERNEL(gemm, iq4_nl, avx512);

GEMM32(iq4_nl, false)
