/* RWKV-7's rule: two registers hold the columns of a row of the state. */
#include "backends/cpu/avx2/vec_avx2.h"
#include "backends/cpu/columns.h"

KERNEL(wkv, f32, avx2);

void wkv_f32_avx2(const struct wkv *w)
{
    wkv_columns(w);
}
