/* iq4_xs × int8 activations by vpmaddubsw; see matvec256_avx2.h. */
#include "backends/cpu/avx2/matvec256_avx2.h"

KERNEL(matvec, iq4_xs, avx2);

MATVEC256(iq4_xs)
