/* Rotation of neighbours: eight pairs at once. */
#include "backends/cpu/avx512/math_avx512.h"
#include "backends/cpu/kernels.h"

KERNEL(rope, f32, avx512);

void rope_f32_avx512(float *x, const float *cs, size_t n_dims)
{
    for (size_t i = 0; i + 1 < n_dims; i += 16) {
        __mmask16 m = tail16((n_dims - i) & ~(size_t)1);
        __m512 v = _mm512_maskz_loadu_ps(m, x + i);
        __m512 t = _mm512_maskz_loadu_ps(m, cs + i);
        __m512 c = _mm512_moveldup_ps(t), s = _mm512_movehdup_ps(t);
        __m512 a = _mm512_moveldup_ps(v), b = _mm512_movehdup_ps(v);
        /* Even lanes fma(a, c, -(b s)), odd lanes fma(a, s, b c). */
        __m512 even = _mm512_fmsub_ps(a, c, _mm512_mul_ps(b, s));
        __m512 odd = _mm512_fmadd_ps(a, s, _mm512_mul_ps(b, c));

        _mm512_mask_storeu_ps(x + i, m, _mm512_mask_blend_ps(0xaaaa, even, odd));
    }
}
