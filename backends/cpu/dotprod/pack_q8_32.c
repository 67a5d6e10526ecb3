/* Columns side by side for the panels of 32; see panel_neon.h. */
#include "backends/cpu/dotprod/tier_dotprod.h"

KERNEL(pack, q8_32, dotprod);

void pack_q8_32_dotprod(const struct pack *p)
{
    pack32(p, &panel_dotprod);
}
