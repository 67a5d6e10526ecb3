/*
 * rope_table - rotations of one position, for ops whose rows are not those of the batch.
 */
#pragma once

#include "backends/cpu/cpu.h"

/* ret: [n_dims], pairs of cos and sin as the rows of ROPE_TABLE without factors. */
void rope_table_row(const struct op_rope_params *p, size_t pos, float *ret);
