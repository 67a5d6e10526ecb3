/* iq3_s × int8 activations; see points_neon.h. */
#include "backends/cpu/neon/points_neon.h"

KERNEL(matvec, iq3_s, neon);

MATVEC_POINTS(iq3_s, decode_magnitudes, half_at(w))
