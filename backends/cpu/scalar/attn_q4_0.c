/* Attention over a chunk of keys and values kept as q4_0. */
#include "backends/cpu/scalar/attn_scalar.h"

KERNEL(attn, q4_0, scalar);

void attn_q4_0_scalar(const struct attn *a)
{
    attn_scalar(a, format_of(FORMAT_q4_0)->to_f32);
}
