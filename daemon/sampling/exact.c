/* Range reduction and short series; see exact.h. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "common/alloc.h"
#include "daemon/sampling/exact.h"

/* ln 2 in two parts: the first has 32 zero bits at its end, so that n * LN2_HIGH is exact. */
#define LN2_HIGH 6.93147180369123816490e-01
#define LN2_LOW  1.90821492927058770002e-10
#define INV_LN2  1.44269504088896338700e+00

static double power_of_two(int e)
{
    uint64_t bits = (uint64_t)(e + 1023) << 52;
    double d;

    memcpy(&d, &bits, sizeof d);
    return d;
}

double exact_exp(double x)
{
    /* 1 / k!; |r| ≤ ln 2 / 2, so that r^14 / 14! < 2^-57 is the first that is left out. */
    static const double taylor[] = {
        1.0,
        1.0,
        1.0 / 2,
        1.0 / 6,
        1.0 / 24,
        1.0 / 120,
        1.0 / 720,
        1.0 / 5040,
        1.0 / 40320,
        1.0 / 362880,
        1.0 / 3628800,
        1.0 / 39916800,
        1.0 / 479001600,
        1.0 / 6227020800,
    };
    double n, r, sum;
    int e;

    if (!(x > -745.0))
        return 0.0;
    if (x > 709.7)
        return INFINITY;
    e = (int)(x * INV_LN2 + (x < 0 ? -0.5 : 0.5));
    n = e;
    r = x - n * LN2_HIGH - n * LN2_LOW;
    sum = taylor[ARRAY_LEN(taylor) - 1];
    for (int k = (int)ARRAY_LEN(taylor) - 2; k >= 0; k--)
        sum = taylor[k] + sum * r;
    /* In two steps where the result is subnormal. */
    if (e < -1000)
        return sum * power_of_two(e + 200) * power_of_two(-200);
    return sum * power_of_two(e);
}

double exact_log(double x)
{
    uint64_t bits;
    double m, s, s2, sum = 0;
    int e = 0;

    if (!(x > 0))
        return -INFINITY;
    if (x < 0x1p-1000) {
        x *= 0x1p100;
        e = -100;
    }
    memcpy(&bits, &x, sizeof bits);
    e += (int)(bits >> 52) - 1023;
    bits = (bits & UINT64_C(0xfffffffffffff)) | UINT64_C(1023) << 52;
    memcpy(&m, &bits, sizeof m);
    if (m > 1.4142135623730951) {
        m *= 0.5;
        e++;
    }
    /* ln m = 2 artanh((m − 1) / (m + 1)), |s| ≤ 0.172: s^23 / 23 < 2^-62. */
    s = (m - 1.0) / (m + 1.0);
    s2 = s * s;
    for (int k = 21; k >= 3; k -= 2)
        sum = (sum + 1.0 / k) * s2;
    return e * LN2_HIGH + (2.0 * (s + s * sum) + e * LN2_LOW);
}
