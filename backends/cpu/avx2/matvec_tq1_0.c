/* tq1_0 × int8 activations by vpmaddubsw; see matvec256_avx2.h. */
#include "backends/cpu/avx2/matvec256_avx2.h"

KERNEL(matvec, tq1_0, avx2);

MATVEC256(tq1_0)
