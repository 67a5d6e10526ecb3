/*
 * ROPE_TABLE: cos and sin of every (position, pair), made once per batch in
 * double precision by scalar code alone, so that every machine has the same.
 * YaRN: Peng et al. 2023, arXiv 2309.00071, section 3.
 */
#include "backends/cpu/ops/rope_table.h"
#include "backends/cpu/math.h"

#define TWO_PI 6.28318530717958647693

/* The pair whose wavelength fits n_rot times into the training context. */
static double yarn_pair(const struct op_rope_params *p, double n_rot)
{
    return p->n_dims * math_log64(p->n_ctx_orig / (n_rot * TWO_PI)) / (2.0 * math_log64(p->base));
}

/* How much of the unscaled frequency pair i keeps: 1 for the fast ones, 0 for the slow ones. */
static double yarn_ramp(const struct op_rope_params *p, size_t i)
{
    double low = __builtin_floor(yarn_pair(p, p->beta_fast));
    double high = __builtin_ceil(yarn_pair(p, p->beta_slow));
    double y;

    low = low > 0.0 ? low : 0.0;
    high = high < p->n_dims - 1.0 ? high : p->n_dims - 1.0;
    y = ((double)i - low) / (high - low > 0.001 ? high - low : 0.001);
    return 1.0 - (y < 0.0 ? 0.0 : y > 1.0 ? 1.0 : y);
}

static double frequency(const struct op_rope_params *p, const float *factors, double log_base,
                        size_t i)
{
    double freq = math_exp64(-2.0 * (double)i / p->n_dims * log_base);
    double keep = p->ext_factor != 0.0f ? yarn_ramp(p, i) * p->ext_factor : 0.0;

    if (factors)
        freq /= factors[i];
    return freq * p->freq_scale * (1.0 - keep) + freq * keep;
}

static double magnitude_of(const struct op_rope_params *p)
{
    double magnitude = p->attn_factor;

    if (p->ext_factor != 0.0f)
        magnitude *= 1.0 + 0.1 * math_log64(1.0 / p->freq_scale);
    return magnitude;
}

static void turn(const struct op_rope_params *p, double angle, double magnitude, float cs[2])
{
    double s, c;

    math_sincos64(angle, &s, &c);
    cs[0] = (float)(c * magnitude);
    cs[1] = (float)((p->inverse ? -s : s) * magnitude);
}

void rope_table_row(const struct op_rope_params *p, size_t pos, float *ret)
{
    double magnitude = magnitude_of(p), log_base = math_log64(p->base);

    for (size_t i = 0; i < p->n_dims / 2; i++)
        turn(p, (double)pos * frequency(p, NULL, log_base, i), magnitude, ret + 2 * i);
}

static void run(const struct op *op, const struct part *p)
{
    const struct op_rope_params *rope = &op->p.rope_table;
    const float *factors = op->src[0].fmt ? op->src[0].data : NULL;
    double magnitude = magnitude_of(rope), log_base = math_log64(rope->base);
    size_t from, to;

    part_rows(p, &from, &to);
    if (from >= to)
        return;
    for (size_t i = 0; i < rope->n_dims / 2; i++) {
        double freq = frequency(rope, factors, log_base, i);

        for (size_t r = from; r < to; r++)
            turn(rope, (double)(p->run->pos + r) * freq, magnitude,
                 tensor_f32(&op->dst[0], r) + 2 * i);
    }
}

const struct driver driver_ROPE_TABLE = {.run = run, .by_row = true};
