/* The gated delta rule: four columns of the state at a time, a register for each of the four partial sums. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/neon/math_neon.h"

KERNEL(delta, f32, neon);

/* A row's scaled vectors. */
struct row {
    float q[KERNELS_HEAD_MAX + 4];
    float k[KERNELS_HEAD_MAX + 4];
    float seen[KERNELS_HEAD_MAX + 4]; /* k * decay */
};

static void scale_row(const struct delta *d, size_t r, struct row *row)
{
    const float *q = d->q + r * d->q_stride, *k = d->k + r * d->k_stride;
    const float *decay = d->decay + r * d->decay_stride;

    for (size_t i = 0; i < d->n; i += 4) {
        size_t left = d->n - i;
        float32x4_t kk = vmulq_n_f32(load4(k + i, left), d->k_scale);
        float32x4_t g = d->decay_step ? load4(decay + i, left) : vdupq_n_f32(*decay);

        vst1q_f32(row->q + i, vmulq_n_f32(load4(q + i, left), d->q_scale));
        vst1q_f32(row->k + i, kk);
        vst1q_f32(row->seen + i, vmulq_f32(kk, g));
    }
}

static inline float32x4_t sum4(const float32x4_t p[4])
{
    return vaddq_f32(vaddq_f32(p[0], p[2]), vaddq_f32(p[1], p[3]));
}

static inline void clear4(float32x4_t p[4])
{
    for (size_t j = 0; j < 4; j++)
        p[j] = vdupq_n_f32(0.0f);
}

static float32x4_t diff_of(const struct delta *d, size_t r, const struct row *row, size_t at)
{
    const float *s = d->state + at;
    float32x4_t p[4], v = vdupq_n_f32(0.0f);
    size_t i = 0;

    clear4(p);
    if (at < d->cols)
        v = load4(d->v + r * d->v_stride + at, d->cols - at);
    for (; i + 4 <= d->n; i += 4)
        for (size_t j = 0; j < 4; j++)
            p[j] = vfmaq_n_f32(p[j], vld1q_f32(s + (i + j) * KERNELS_COLS), row->seen[i + j]);
    for (size_t j = 0; i + j < d->n; j++)
        p[j] = vfmaq_n_f32(p[j], vld1q_f32(s + (i + j) * KERNELS_COLS), row->seen[i + j]);
    return vmulq_n_f32(vsubq_f32(v, sum4(p)), math_sigmoid(d->rate[r * d->rate_stride]));
}

static inline void step(float *s, float g, float k, float q, float32x4_t diff, float32x4_t *p)
{
    float32x4_t x = vfmaq_n_f32(vmulq_n_f32(diff, k), vld1q_f32(s), g);

    vst1q_f32(s, x);
    *p = vfmaq_n_f32(*p, x, q);
}

static void four_columns(const struct delta *d, size_t r, const struct row *row, size_t at)
{
    const float *g = d->decay + r * d->decay_stride;
    float32x4_t diff = diff_of(d, r, row, at), p[4];
    size_t i = 0, go = d->decay_step;
    float *s = d->state + at;

    clear4(p);
    for (; i + 4 <= d->n; i += 4)
        for (size_t j = 0; j < 4; j++)
            step(s + (i + j) * KERNELS_COLS, g[(i + j) * go], row->k[i + j], row->q[i + j], diff,
                 &p[j]);
    for (size_t j = 0; i + j < d->n; j++)
        step(s + (i + j) * KERNELS_COLS, g[(i + j) * go], row->k[i + j], row->q[i + j], diff,
             &p[j]);
    if (at < d->cols)
        store4(d->o + r * d->o_stride + at, d->cols - at, sum4(p));
}

void delta_f32_neon(const struct delta *d)
{
    struct row row;

    for (size_t r = 0; r < d->rows; r++) {
        scale_row(d, r, &row);
        for (size_t at = 0; at < KERNELS_COLS; at += 4)
            four_columns(d, r, &row, at);
    }
}
