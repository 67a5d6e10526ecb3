/* Columns side by side for the panels of 32; see panel_neon.h. */
#include "backends/cpu/i8mm/tier_i8mm.h"

KERNEL(pack, q8_32, i8mm);

void pack_q8_32_i8mm(const struct pack *p)
{
    pack32(p, &panel_i8mm);
}
