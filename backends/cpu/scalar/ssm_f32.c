/* A selective state space; the definition of its bits. */
#include <math.h>

#include "backends/cpu/kernels.h"
#include "backends/cpu/math.h"

KERNEL(ssm, f32, scalar);

/* One row on one column of the state. */
static float column(const struct ssm *s, size_t r, size_t c)
{
    const float *b = s->b + r * s->b_stride, *out = s->c + r * s->c_stride;
    bool is_there = c < s->cols;
    float dt = s->dt[r * s->dt_stride];
    float x = is_there ? s->x[r * s->x_stride + c] : 0.0f;
    float p[4] = {0};

    if (s->dt_each)
        dt = is_there ? s->dt[r * s->dt_stride + c] : 0.0f;
    for (size_t i = 0; i < s->n; i++) {
        float *h = &s->state[i * KERNELS_COLS + c];
        float decay =
            s->a ? math_exp(dt * s->a[i * KERNELS_COLS + c]) : s->decay[r * s->decay_stride];

        *h = fmaf(*h, decay, b[i] * (x * dt));
        p[i % 4] = fmaf(*h, out[i], p[i % 4]);
    }
    return fmaf(x, s->d[c], (p[0] + p[2]) + (p[1] + p[3]));
}

void ssm_f32_scalar(const struct ssm *s)
{
    for (size_t r = 0; r < s->rows; r++)
        for (size_t c = 0; c < KERNELS_COLS; c++) {
            float y = column(s, r, c);

            if (c < s->cols)
                s->y[r * s->y_stride + c] = y;
        }
}
