/* First come, first served, but for swaps; see schedule.h. */
#include "daemon/engine/schedule.h"

size_t schedule_next(const struct schedule_item *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        /* In order: what came before this one was not ready and has patience left. */
        if (items[i].ready || items[i].passed >= SCHEDULE_MAX_PASSED)
            return i;
    }
    return 0;
}
