/* iq2_xs × int8 activations by VNNI; see points_avx512.h and matvec256_avx512.h. */
#include "backends/cpu/avx512/matvec256_avx512.h"
#include "backends/cpu/avx512/points_avx512.h"

KERNEL(matvec, iq2_xs, avx512);

MATVEC256(iq2_xs)
