/* The gated delta rule; the definition of its bits. */
#include <math.h>

#include "backends/cpu/kernels.h"
#include "backends/cpu/math.h"

KERNEL(delta, f32, scalar);

static float sum4(const float p[4])
{
    return (p[0] + p[2]) + (p[1] + p[3]);
}

/* One row on one column of the state. */
static float column(const struct delta *d, size_t r, size_t c)
{
    const float *q = d->q + r * d->q_stride, *k = d->k + r * d->k_stride;
    const float *decay = d->decay + r * d->decay_stride;
    float rate = math_sigmoid(d->rate[r * d->rate_stride]);
    float v = c < d->cols ? d->v[r * d->v_stride + c] : 0.0f;
    float seen[4] = {0}, out[4] = {0};
    float diff;

    for (size_t i = 0; i < d->n; i++)
        seen[i % 4] = fmaf(d->state[i * KERNELS_COLS + c],
                           k[i] * d->k_scale * decay[i * d->decay_step], seen[i % 4]);
    diff = rate * (v - sum4(seen));
    for (size_t i = 0; i < d->n; i++) {
        float *s = &d->state[i * KERNELS_COLS + c];

        *s = fmaf(*s, decay[i * d->decay_step], k[i] * d->k_scale * diff);
        out[i % 4] = fmaf(*s, q[i] * d->q_scale, out[i % 4]);
    }
    return sum4(out);
}

void delta_f32_scalar(const struct delta *d)
{
    for (size_t r = 0; r < d->rows; r++)
        for (size_t c = 0; c < KERNELS_COLS; c++) {
            float o = column(d, r, c);

            if (c < d->cols)
                d->o[r * d->o_stride + c] = o;
        }
}
