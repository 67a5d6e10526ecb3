/* Two-level scales; see encode_k.h. */
#include "backends/formats/encode_k.h"

#include "backends/formats/encode.h"

void encode_k_scales(const float x[256], int lo, int hi, int scale_lo, int scale_hi,
                     uint16_t *ret_d, int ret_scales[16], int8_t ret_q[256])
{
    float scale[16], extreme = 0, d, inv;

    for (int j = 0; j < 16; j++) {
        scale[j] = encode_scale(x + 16 * j, 16, lo, hi);
        if (fabsf(scale[j]) > fabsf(extreme))
            extreme = scale[j];
    }
    /* The low end of a signed range reaches one further: it takes the extreme. */
    *ret_d = encode_f16(extreme / (float)scale_lo);
    d = f16_to_f32(*ret_d);
    inv = encode_inverse(d);
    for (int j = 0; j < 16; j++) {
        float group_inv;

        ret_scales[j] = encode_round(scale[j] * inv, scale_lo, scale_hi);
        group_inv = encode_inverse(d * (float)ret_scales[j]);
        for (int l = 0; l < 16; l++)
            ret_q[16 * j + l] = (int8_t)encode_round(x[16 * j + l] * group_inv, lo, hi);
    }
}

void encode_k_groups(const float x[256], int n, int hi, int top, uint16_t *ret_d,
                     uint16_t *ret_dmin, uint8_t *ret_sc, uint8_t *ret_m, uint8_t ret_q[256])
{
    int each = 256 / n;
    float scale[16], min[16], max_scale = 0, max_min = 0, d, dmin, inv, inv_min;

    for (int j = 0; j < n; j++) {
        scale[j] = encode_scale_min(x + each * j, each, hi, &min[j]);
        max_scale = fmaxf(max_scale, scale[j]);
        max_min = fmaxf(max_min, min[j]);
    }
    *ret_d = encode_f16(max_scale / (float)top);
    *ret_dmin = encode_f16(max_min / (float)top);
    d = f16_to_f32(*ret_d);
    dmin = f16_to_f32(*ret_dmin);
    inv = encode_inverse(d);
    inv_min = encode_inverse(dmin);
    for (int j = 0; j < n; j++) {
        float group_inv, group_min;

        ret_sc[j] = (uint8_t)encode_round(scale[j] * inv, 0, top);
        ret_m[j] = (uint8_t)encode_round(min[j] * inv_min, 0, top);
        group_inv = encode_inverse(d * (float)ret_sc[j]);
        group_min = dmin * (float)ret_m[j];
        for (int l = 0; l < each; l++)
            ret_q[each * j + l] =
                (uint8_t)encode_round((x[each * j + l] + group_min) * group_inv, 0, hi);
    }
}

void encode_k_mins(const float x[256], int hi, uint16_t *ret_d, uint16_t *ret_dmin,
                   uint8_t ret_scales[12], uint8_t ret_q[256])
{
    uint8_t sc[8], m[8];

    encode_k_groups(x, 8, hi, 63, ret_d, ret_dmin, sc, m, ret_q);
    /* The packing that k_scale() and k_min() undo. */
    for (int j = 0; j < 4; j++) {
        ret_scales[j] = (uint8_t)(sc[j] | sc[j + 4] >> 4 << 6);
        ret_scales[j + 4] = (uint8_t)(m[j] | m[j + 4] >> 4 << 6);
        ret_scales[j + 8] = (uint8_t)((sc[j + 4] & 15) | (m[j + 4] & 15) << 4);
    }
}
