/* q1_0 × int8 activations by vpmaddubsw; see matvec32_avx2.h. */
#include "backends/cpu/avx2/matvec32_avx2.h"

KERNEL(matvec, q1_0, avx2);

MATVEC32(q1_0)
