/* q3_k × int8 activations by vpmaddubsw; see matvec256_avx2.h. */
#include "backends/cpu/avx2/matvec256_avx2.h"

KERNEL(matvec, q3_k, avx2);

MATVEC256(q3_k)
