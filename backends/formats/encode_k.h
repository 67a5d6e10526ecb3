/*
 * encode_k - the two-level scales of the 256-weight formats: a scale per group
 * of 16 or 32, itself an integer times one f16 scale of the block.
 */
#pragma once

#include <stdint.h>

/*
 * Sixteen groups of 16: x ≈ d * scales[j] * q, q in [lo, hi], scales in
 * [scale_lo, scale_hi] (q3_k, q6_k).
 */
void encode_k_scales(const float x[256], int lo, int hi, int scale_lo, int scale_hi,
                     uint16_t *ret_d, int ret_scales[16], int8_t ret_q[256]);

/* Eight groups of 32: x ≈ d * sc * q - dmin * m, q in [0, hi], sc and m of six bits (q4_k, q5_k). */
void encode_k_mins(const float x[256], int hi, uint16_t *ret_d, uint16_t *ret_dmin,
                   uint8_t ret_scales[12], uint8_t ret_q[256]);

/*
 * The step both of those share, for n groups of 256 / n: chooses d and dmin
 * with scales and minima up to top, and the codes for the rounded values.
 */
void encode_k_groups(const float x[256], int n, int hi, int top, uint16_t *ret_d,
                     uint16_t *ret_dmin, uint8_t *ret_sc, uint8_t *ret_m, uint8_t ret_q[256]);
