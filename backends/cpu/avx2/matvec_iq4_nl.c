/* iq4_nl × int8 activations by vpmaddubsw; see matvec32_avx2.h. */
#include "backends/cpu/avx2/matvec32_avx2.h"

KERNEL(matvec, iq4_nl, avx2);

MATVEC32(iq4_nl)
