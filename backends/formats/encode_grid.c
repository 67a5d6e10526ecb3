/* Nearest points of grids; see encode_grid.h. */
#include "backends/formats/encode_grid.h"

#include <string.h>

#include "backends/formats/encode.h"
#include "backends/formats/iq_tables.h"

/* Scales below the one that just holds the largest weight that a group tries. */
#define TRIES 3

/* The index of the point nearest to t (width values), and its squared distance. */
static int nearest_point(const struct grid *g, const float *t, int width, float *ret_err)
{
    float best = HUGE_VALF;
    int at = 0;

    for (int k = 0; k < g->n; k++) {
        uint64_t point = g->points8 ? g->points8[k] : g->points4[k];
        float err = 0;

        for (int i = 0; i < width; i++) {
            float e = t[i] - (float)(int8_t)(point >> 8 * i);

            err += e * e;
        }
        if (err < best) {
            best = err;
            at = k;
        }
    }
    *ret_err = best;
    return at;
}

/* Magnitudes and signs; where parity must be even, the smallest takes the wrong sign. */
static uint8_t split_signs(const struct grid *g, const float *x, float *magnitude)
{
    unsigned signs = 0;
    int smallest = 0;

    for (int i = 0; i < 8; i++) {
        magnitude[i] = isfinite(x[i]) ? fabsf(x[i]) : 0;
        signs |= (unsigned)(x[i] < 0) << i;
        if (magnitude[i] < magnitude[smallest])
            smallest = i;
    }
    if (g->even && __builtin_parity(signs)) {
        signs ^= 1u << smallest;
        magnitude[smallest] = -magnitude[smallest];
    }
    return (uint8_t)signs;
}

/* Codes one group under unit * (2s + 1); returns the error in squares of x. */
static float encode_group(const struct grid *g, const float *magnitude, float scale,
                          uint16_t *index)
{
    int width = g->points8 ? 8 : 4;
    float inv = encode_inverse(scale), sum = 0, err;

    for (int i = 0; i < g->group; i += width) {
        float t[8];

        for (int k = 0; k < width; k++)
            t[k] = magnitude[i + k] * inv;
        index[i / width] = (uint16_t)nearest_point(g, t, width, &err);
        sum += err * scale * scale;
    }
    return sum;
}

void encode_grid(const struct grid *g, const float x[256], struct grid_codes *ret)
{
    int each = g->group / (g->points8 ? 8 : 4); /* points of a group */
    float magnitude[256], most = 0, unit;

    memset(ret, 0, sizeof *ret);
    for (int i = 0; i < 256; i += 8)
        ret->signs[i / 8] = split_signs(g, x + i, magnitude + i);
    for (int i = 0; i < 256; i++)
        most = fmaxf(most, fabsf(magnitude[i]));
    ret->d = encode_f16(most / (float)g->top / (float)(2 * g->steps - 1) * g->share);
    unit = f16_to_f32(ret->d) / g->share;
    for (int j = 0; j < 256 / g->group; j++) {
        const float *m = magnitude + g->group * j;
        float inv = encode_inverse(unit * (float)g->top), best = HUGE_VALF;
        int first = encode_round(encode_max_abs(m, g->group) * inv * 0.5f, 0, g->steps - 1);

        for (int s = first; s >= 0 && s > first - TRIES; s--) {
            uint16_t index[8];
            float err = encode_group(g, m, unit * (float)(2 * s + 1), index);

            if (err < best) {
                best = err;
                ret->s[j] = (uint8_t)s;
                memcpy(ret->index + each * j, index, (size_t)each * sizeof *index);
            }
        }
    }
}

/* Nearest ternary point to 8 values in units of the scale, under a shift of ±1/8. */
static int nearest_ternary(const float *t, float shift, float *ret_err)
{
    float best = HUGE_VALF;
    int at = 0;

    for (int k = 0; k < 2048; k++) {
        float err = 0;

        for (int i = 0; i < 8; i++) {
            float e = t[i] - ((float)(int8_t)(iq1_grid[k] >> 8 * i) + shift);

            err += e * e;
        }
        if (err < best) {
            best = err;
            at = k;
        }
    }
    *ret_err = best;
    return at;
}

/* n weights in units of the scale that share a shift: the better of both; returns its error. */
static float encode_shift(const float *t, int n, uint16_t *index, uint8_t *minus)
{
    float best = HUGE_VALF;

    for (int sign = 0; sign < 2; sign++) {
        uint16_t at[4];
        float sum = 0, err;

        for (int i = 0; i < n; i += 8) {
            at[i / 8] = (uint16_t)nearest_ternary(t + i, sign ? -0.125f : 0.125f, &err);
            sum += err;
        }
        if (sum < best) {
            best = sum;
            memcpy(index, at, (size_t)(n / 8) * sizeof *at);
            memset(minus, sign, (size_t)(n / 8));
        }
    }
    return best;
}

void encode_grid1(const float x[256], int group, int shift_group, struct grid1_codes *ret)
{
    float clean[256], d;

    memset(ret, 0, sizeof *ret);
    for (int i = 0; i < 256; i++)
        clean[i] = isfinite(x[i]) ? x[i] : 0;
    ret->d = encode_f16(encode_max_abs(clean, 256) / 15.0f);
    d = f16_to_f32(ret->d);
    for (int j = 0; j < 256 / group; j++) {
        const float *c = clean + group * j;
        float best = HUGE_VALF;
        int first = encode_round(encode_max_abs(c, group) * encode_inverse(d) * 0.5f, 0, 7);

        /* One try more than for magnitudes: three levels leave more to gain below the largest. */
        for (int s = first; s >= 0 && s > first - TRIES - 1; s--) {
            float scale = d * (float)(2 * s + 1), inv = encode_inverse(scale), t[32], err = 0;
            uint16_t index[4] = {0};
            uint8_t minus[4] = {0};

            for (int i = 0; i < group; i++)
                t[i] = c[i] * inv;
            for (int i = 0; i < group; i += shift_group)
                err += encode_shift(t + i, shift_group, index + i / 8, minus + i / 8);
            if (err * scale * scale < best) {
                best = err * scale * scale;
                ret->s[j] = (uint8_t)s;
                memcpy(ret->index + group / 8 * j, index, (size_t)(group / 8) * sizeof *index);
                memcpy(ret->minus + group / 8 * j, minus, (size_t)(group / 8));
            }
        }
    }
}
