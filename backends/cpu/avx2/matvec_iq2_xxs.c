/* iq2_xxs × int8 activations by vpmaddubsw; see points_avx2.h and matvec256_avx2.h. */
#include "backends/cpu/avx2/matvec256_avx2.h"
#include "backends/cpu/avx2/points_avx2.h"

KERNEL(matvec, iq2_xxs, avx2);

MATVEC256(iq2_xxs)
