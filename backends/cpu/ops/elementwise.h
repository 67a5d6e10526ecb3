/*
 * elementwise - what moe and the rules of states need of the gated activations.
 */
#pragma once

#include "backends/cpu/cpu.h"

#define ELEMENTWISE_ONES KERNELS_HEAD_MAX

/* A second factor that changes nothing. */
extern const float elementwise_ones[ELEMENTWISE_ONES];

/* y = act(gate) * up, by the limit of op.h; up may be NULL for GELU, RELU2 and SIGMOID (op_check). */
void glu_row(const struct kernels *k, enum op_act act, float limit, const float *gate,
             const float *up, float *y, size_t n);
