/* q2_k × int8 activations by vpmaddubsw; see matvec256_avx2.h. */
#include "backends/cpu/avx2/matvec256_avx2.h"

KERNEL(matvec, q2_k, avx2);

MATVEC256(q2_k)
