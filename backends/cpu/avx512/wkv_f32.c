/* RWKV-7's rule: a register holds the columns of a row of the state. */
#include "backends/cpu/avx512/vec_avx512.h"
#include "backends/cpu/columns.h"

KERNEL(wkv, f32, avx512);

void wkv_f32_avx512(const struct wkv *w)
{
    wkv_columns(w);
}
