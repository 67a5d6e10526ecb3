/* Attention over a chunk of keys and values kept as f32. */
#include "backends/cpu/scalar/attn_scalar.h"

KERNEL(attn, f32, scalar);

void attn_f32_scalar(const struct attn *a)
{
    attn_scalar(a, format_of(FORMAT_f32)->to_f32);
}
