/* RWKV-7's rule; the definition of its bits. */
#include <math.h>

#include "backends/cpu/kernels.h"

KERNEL(wkv, f32, scalar);

static float sum4(const float p[4])
{
    return (p[0] + p[2]) + (p[1] + p[3]);
}

static float column(const struct wkv *w, size_t c)
{
    float v = c < w->cols ? w->v[c] : 0.0f;
    float seen[4] = {0}, out[4] = {0}, a;

    for (size_t i = 0; i < w->n; i++)
        seen[i % 4] = fmaf(w->state[i * KERNELS_COLS + c], w->seen[i], seen[i % 4]);
    a = sum4(seen);
    for (size_t i = 0; i < w->n; i++) {
        float *s = &w->state[i * KERNELS_COLS + c];

        *s = fmaf(*s, w->decay[i], fmaf(a, w->write[i], v * w->k[i]));
        out[i % 4] = fmaf(*s, w->r[i], out[i % 4]);
    }
    return sum4(out);
}

void wkv_f32_scalar(const struct wkv *w)
{
    for (size_t c = 0; c < KERNELS_COLS; c++) {
        float o = column(w, c);

        if (c < w->cols)
            w->o[c] = o;
    }
}
