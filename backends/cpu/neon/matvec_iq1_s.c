/* iq1_s × int8 activations; see points_neon.h. */
#include "backends/cpu/neon/points_neon.h"

KERNEL(matvec, iq1_s, neon);

MATVEC_POINTS(iq1_s, decode_ternary, half_at(w) * 0.125f)
