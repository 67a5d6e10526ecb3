/* Attention over a chunk of keys and values kept as f16. */
#include "backends/cpu/scalar/attn_scalar.h"

KERNEL(attn, f16, scalar);

void attn_f16_scalar(const struct attn *a)
{
    attn_scalar(a, format_of(FORMAT_f16)->to_f32);
}
