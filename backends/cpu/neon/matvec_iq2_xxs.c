/* iq2_xxs × int8 activations; see points_neon.h. */
#include "backends/cpu/neon/points_neon.h"

KERNEL(matvec, iq2_xxs, neon);

MATVEC_POINTS(iq2_xxs, decode_magnitudes, half_at(w) * 0.125f)
