/* Double precision exp, log, sin and cos by fixed series; see math.h. */
#include "backends/cpu/math.h"

/* ln 2 and pi / 2 as a short head, so that head * integer is exact, and a tail. */
#define LN2_HEAD 6.93147180369123816490e-01
#define LN2_TAIL 1.90821492927058770002e-10
#define PIO2_1   1.57079632673412561417e+00
#define PIO2_2   6.07710050630396597660e-11
#define PIO2_3   2.02226624879595063154e-21
#define ROUND64  6755399441055744.0 /* 1.5 * 2^52 */
#define N_EXP    14
#define N_LOG    12
#define N_TRIG   8

/* Factors from term to term of the series: a division each would be most of their time. */
static const double exp_step[N_EXP + 1] = {0,        1.0,      1.0 / 2,  1.0 / 3,  1.0 / 4,
                                           1.0 / 5,  1.0 / 6,  1.0 / 7,  1.0 / 8,  1.0 / 9,
                                           1.0 / 10, 1.0 / 11, 1.0 / 12, 1.0 / 13, 1.0 / 14};
static const double log_term[N_LOG + 1] = {0,        1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9,
                                           1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19,
                                           1.0 / 21, 1.0 / 23, 1.0 / 25};
static const double sin_step[N_TRIG + 1] = {
    0, -1.0 / 6, -1.0 / 20, -1.0 / 42, -1.0 / 72, -1.0 / 110, -1.0 / 156, -1.0 / 210, -1.0 / 272};
static const double cos_step[N_TRIG + 1] = {0,         -1.0 / 2,   -1.0 / 12,  -1.0 / 30, -1.0 / 56,
                                            -1.0 / 90, -1.0 / 132, -1.0 / 182, -1.0 / 240};

static double from_bits(uint64_t u)
{
    double d;

    memcpy(&d, &u, sizeof(d));
    return d;
}

static double round_even(double x)
{
    volatile double t = x + ROUND64;

    return t - ROUND64;
}

double math_exp64(double x)
{
    double n, r, p = 1.0;

    if (x != x)
        return x;
    if (x > 709.0)
        x = 709.0;
    if (x < -708.0)
        x = -708.0;
    n = round_even(x * 1.44269504088896340736);
    r = (x - n * LN2_HEAD) - n * LN2_TAIL;
    for (int i = N_EXP; i >= 1; i--)
        p = 1.0 + p * r * exp_step[i];
    return p * from_bits((uint64_t)((int64_t)n + 1023) << 52);
}

/* x = 2^k m with m in [sqrt(1/2), sqrt(2)); ln m = 2 atanh((m - 1) / (m + 1)). */
double math_log64(double x)
{
    uint64_t u;
    int64_t k;
    double m, f, z, s = 0.0;

    memcpy(&u, &x, sizeof(u));
    k = (int64_t)(u >> 52) - 1023;
    m = from_bits((u & 0xfffffffffffffULL) | 0x3ff0000000000000ULL);
    if (m > 1.41421356237309504880) {
        m *= 0.5;
        k++;
    }
    f = (m - 1.0) / (m + 1.0);
    z = f * f;
    for (int i = N_LOG; i >= 1; i--)
        s = (s + log_term[i]) * z;
    return (double)k * LN2_HEAD + ((2.0 * f + 2.0 * f * s) + (double)k * LN2_TAIL);
}

void math_sincos64(double x, double *ret_sin, double *ret_cos)
{
    double q = round_even(x * 0.63661977236758134308);
    double r = ((x - q * PIO2_1) - q * PIO2_2) - q * PIO2_3;
    double z = r * r, s = 0.0, c = 0.0;
    int64_t quadrant = (int64_t)q & 3;

    /* sin r = r - r z / 3! …; cos r = 1 - z / 2! …: nested, smallest term first. */
    for (int i = N_TRIG; i >= 1; i--) {
        s = (1.0 + s) * (z * sin_step[i]);
        c = (1.0 + c) * (z * cos_step[i]);
    }
    s = r + r * s;
    c = 1.0 + c;

    *ret_sin = quadrant & 1 ? c : s;
    *ret_cos = quadrant & 1 ? s : c;
    if (quadrant & 2)
        *ret_sin = -*ret_sin;
    if (quadrant == 1 || quadrant == 2)
        *ret_cos = -*ret_cos;
}
