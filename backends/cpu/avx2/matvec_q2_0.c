/* q2_0 × int8 activations by vpmaddubsw; see matvec32_avx2.h. */
#include "backends/cpu/avx2/matvec32_avx2.h"

KERNEL(matvec, q2_0, avx2);

MATVEC32(q2_0)
