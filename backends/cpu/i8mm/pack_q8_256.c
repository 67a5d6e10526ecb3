/* Columns side by side for the panels of 256; see panel_neon.h. */
#include "backends/cpu/i8mm/tier_i8mm.h"

KERNEL(pack, q8_256, i8mm);

void pack_q8_256_i8mm(const struct pack *p)
{
    pack256(p, &panel_i8mm);
}
