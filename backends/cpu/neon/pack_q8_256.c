/* Columns side by side for the panels of 256; see panel_neon.h. */
#include "backends/cpu/neon/tier_neon.h"

KERNEL(pack, q8_256, neon);

void pack_q8_256_neon(const struct pack *p)
{
    pack256(p, &panel_neon);
}
