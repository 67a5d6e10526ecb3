/* iq4_xs × int8 activations by VNNI; see matvec256_avx512.h. */
#include "backends/cpu/avx512/matvec256_avx512.h"

KERNEL(matvec, iq4_xs, avx512);

MATVEC256(iq4_xs)
