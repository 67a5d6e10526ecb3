/* iq1_m × int8 activations; see points_neon.h. */
#include "backends/cpu/neon/points_neon.h"

KERNEL(matvec, iq1_m, neon);

MATVEC_POINTS(iq1_m, decode_ternary, f16_to_f32(points_half_iq1_m(w)) * 0.125f)
