/* Columns side by side for the panels of 32; see panel_neon.h. */
#include "backends/cpu/neon/tier_neon.h"

KERNEL(pack, q8_32, neon);

void pack_q8_32_neon(const struct pack *p)
{
    pack32(p, &panel_neon);
}
