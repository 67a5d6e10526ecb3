/* iq3_xxs × int8 activations; see points_neon.h. */
#include "backends/cpu/neon/points_neon.h"

KERNEL(matvec, iq3_xxs, neon);

MATVEC_POINTS(iq3_xxs, decode_magnitudes, half_at(w) * 0.25f)
