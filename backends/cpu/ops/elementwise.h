/*
 * elementwise - what moe needs of the gated activations.
 */
#pragma once

#include "backends/cpu/cpu.h"

/* y = act(gate) * up; up may be NULL for OP_ACT_GELU and OP_ACT_RELU2 (op_check). */
void glu_row(const struct kernels *k, enum op_act act, const float *gate, const float *up, float *y,
             size_t n);
