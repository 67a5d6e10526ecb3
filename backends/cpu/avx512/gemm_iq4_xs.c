/* iq4_xs × many columns by VNNI; see panel_avx512.h. */
#include "backends/cpu/avx512/decode_avx512.h"

KERNEL(gemm, iq4_xs, avx512);

GEMM256_UNPACK(iq4_xs)
