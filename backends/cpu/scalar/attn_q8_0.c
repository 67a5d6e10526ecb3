/* Attention over a chunk of keys and values kept as q8_0. */
#include "backends/cpu/scalar/attn_scalar.h"

KERNEL(attn, q8_0, scalar);

void attn_q8_0_scalar(const struct attn *a)
{
    attn_scalar(a, format_of(FORMAT_q8_0)->to_f32);
}
