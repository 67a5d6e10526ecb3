/* Searches for the scales of blocks; see encode.h. */
#include "backends/formats/encode.h"

#include <string.h>

/* Candidates to either side of the obvious scale, and their distance as a share of the range. */
#define STEPS 8
#define STEP  0.02f

float encode_max_abs(const float *x, int n)
{
    float max = 0;

    for (int i = 0; i < n; i++)
        if (isfinite(x[i]))
            max = fmaxf(max, fabsf(x[i]));
    return max;
}

/* A value to which x is pulled before it is rounded: the search must not meet NaN. */
static float sane(float x)
{
    return isnan(x) ? 0.0f : fminf(fmaxf(x, -1e30f), 1e30f);
}

struct fit {
    float d;
    float gain; /* error of zeros minus error of d * q: larger is better */
};

/* Least squares over the codes that scale 1 / inv chooses: d = Σxq / Σqq, gain (Σxq)² / Σqq. */
static void fit_range(const float *x, int n, float inv, int lo, int hi, struct fit *best)
{
    float xq = 0, qq = 0;

    for (int i = 0; i < n; i++) {
        float q = (float)encode_round(x[i] * inv, lo, hi);

        xq += x[i] * q;
        qq += q * q;
    }
    if (qq > 0 && xq * xq / qq > best->gain)
        *best = (struct fit){.d = xq / qq, .gain = xq * xq / qq};
}

float encode_scale(const float *x_in, int n, int lo, int hi)
{
    float x[256], max = 0;
    struct fit best = {0};
    float unit;

    for (int i = 0; i < n; i++)
        x[i] = sane(x_in[i]);
    max = encode_max_abs(x, n);
    unit = encode_inverse(max);
    if (unit == 0)
        return 0;
    /* In units of the maximum, so that no square overflows or vanishes. */
    for (int i = 0; i < n; i++)
        x[i] *= unit;
    for (int s = -STEPS; s <= STEPS; s++) {
        float stretch = 1.0f + STEP * (float)s;

        fit_range(x, n, (float)hi * stretch, lo, hi, &best);
        fit_range(x, n, (float)lo * stretch, lo, hi, &best);
        if (-lo != hi) {
            fit_range(x, n, -(float)hi * stretch, lo, hi, &best);
            fit_range(x, n, -(float)lo * stretch, lo, hi, &best);
        }
    }
    return best.d * max;
}

/* Error of the codes that (d, min) choose, and the least-squares (d, min >= floor) for them. */
static float refit(const float *x, int n, int hi, float floor, float *d, float *min)
{
    float inv = encode_inverse(*d), err = 0;
    float sx = 0, sq = 0, sqq = 0, sxq = 0, det;

    for (int i = 0; i < n; i++) {
        float q = (float)encode_round((x[i] + *min) * inv, 0, hi);
        float e = *d * q - *min - x[i];

        err += e * e;
        sx += x[i];
        sq += q;
        sqq += q * q;
        sxq += x[i] * q;
    }
    det = (float)n * sqq - sq * sq;
    if (det > 0) {
        *d = ((float)n * sxq - sq * sx) / det;
        *min = (sq * sxq - sqq * sx) / det;
    }
    if (*min < floor && sqq > 0) {
        *min = floor;
        *d = (sxq + floor * sq) / sqq;
    }
    return err;
}

/* x ≈ d * q - *ret_min with min >= floor, floor in units of the largest |x|. */
static float scale_min(const float *x_in, int n, int hi, float floor, float *ret_min)
{
    float x[256], low, high, best_err = HUGE_VALF, best_d = 0, best_min = 0, max, unit;

    for (int i = 0; i < n; i++)
        x[i] = sane(x_in[i]);
    max = encode_max_abs(x, n);
    unit = encode_inverse(max);
    *ret_min = 0;
    if (unit == 0)
        return 0;
    low = -floor;
    high = -1;
    for (int i = 0; i < n; i++) {
        x[i] *= unit;
        low = fminf(low, x[i]);
        high = fmaxf(high, x[i]);
    }
    for (int s = -STEPS; s <= STEPS; s++) {
        float d = (high - low) / ((float)hi * (1.0f + STEP * (float)s));
        float min = -low;

        for (int pass = 0; pass < 3; pass++) {
            float try_d = d, try_min = min;
            float err = refit(x, n, hi, floor, &d, &min);

            if (err < best_err) {
                best_err = err;
                best_d = try_d;
                best_min = try_min;
            }
            if (!(d > 0))
                break;
        }
    }
    *ret_min = best_min * max;
    return best_d * max;
}

/* The minimum is subtracted, so a block of positive values alone has none. */
float encode_scale_min(const float *x, int n, int hi, float *ret_min)
{
    return scale_min(x, n, hi, 0.0f, ret_min);
}

float encode_scale_offset(const float *x, int n, int hi, float *ret_offset)
{
    float min, d = scale_min(x, n, hi, -1.0f, &min);

    *ret_offset = -min;
    return d;
}

int encode_nearest16(float v, const int8_t values[16])
{
    int lo = 0, hi = 15;

    if (!(v > values[0]))
        return 0;
    if (v >= values[15])
        return 15;
    while (hi - lo > 1) {
        int mid = (lo + hi) / 2;

        if (v < values[mid])
            hi = mid;
        else
            lo = mid;
    }
    return v - values[lo] < values[hi] - v ? lo : hi;
}

float encode_scale_table(const float *x_in, int n, const int8_t values[16])
{
    float x[256], max, unit;
    struct fit best = {0};

    for (int i = 0; i < n; i++)
        x[i] = sane(x_in[i]);
    max = encode_max_abs(x, n);
    unit = encode_inverse(max);
    if (unit == 0)
        return 0;
    for (int i = 0; i < n; i++)
        x[i] *= unit;
    for (int s = -2 * STEPS; s <= 2 * STEPS; s++) {
        int end = s & 1 ? values[0] : values[15];
        float inv = (float)end * (1.0f + STEP * (float)s);
        float xq = 0, qq = 0;

        for (int flip = 0; flip < 2; flip++, inv = -inv) {
            xq = qq = 0;
            for (int i = 0; i < n; i++) {
                float q = values[encode_nearest16(x[i] * inv, values)];

                xq += x[i] * q;
                qq += q * q;
            }
            if (qq > 0 && xq * xq / qq > best.gain)
                best = (struct fit){.d = xq / qq, .gain = xq * xq / qq};
        }
    }
    return best.d * max;
}

int encode_fp4(float v)
{
    float a = fabsf(v);
    int code = 0;

    /* Half-way points of 0 1 2 3 4 6 8 12; a tie goes to the even code. */
    static const float middle[7] = {0.5f, 1.5f, 2.5f, 3.5f, 5.0f, 7.0f, 10.0f};

    while (code < 7 && (a > middle[code] || (a == middle[code] && code % 2)))
        code++;
    return code | (v < 0 ? 8 : 0);
}
