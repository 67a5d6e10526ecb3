/* iq4_nl × int8 activations by VNNI; see matvec32_avx512.h. */
#include "backends/cpu/avx512/matvec32_avx512.h"

KERNEL(matvec, iq4_nl, avx512);

MATVEC32(iq4_nl)
