/* Columns side by side for the panels of 256; see panel_neon.h. */
#include "backends/cpu/dotprod/tier_dotprod.h"

KERNEL(pack, q8_256, dotprod);

void pack_q8_256_dotprod(const struct pack *p)
{
    pack256(p, &panel_dotprod);
}
