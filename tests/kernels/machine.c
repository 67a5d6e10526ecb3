/* What this machine can do; see machine.h. */
#include "tests/kernels/machine.h"

#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "backends/cpu/cpuid.h"

#define SAMPLES 7

double machine_now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

#define TWELVE(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)

#if defined(__x86_64__)
#include <immintrin.h>

#define CLOBBERS                                                                                   \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11"
#define DPBUSD(i)  "vpdpbusd %%zmm12, %%zmm13, %%zmm" #i "\n"
#define MADDUBS(i) "vpmaddubsw %%ymm12, %%ymm13, %%ymm" #i "\n"
#define FMA512(i)  "vfmadd231ps %%zmm12, %%zmm12, %%zmm" #i "\n"
#define FMA256(i)  "vfmadd231ps %%ymm12, %%ymm12, %%ymm" #i "\n"

#define PEAK_LOOP(NAME, OP)                                                                        \
    static void NAME(size_t n)                                                                     \
    {                                                                                              \
        __asm__ volatile("vpxor %%xmm12, %%xmm12, %%xmm12\nvpxor %%xmm13, %%xmm13, %%xmm13\n" ::   \
                             : "xmm12", "xmm13");                                                  \
        for (size_t i = 0; i < n; i++)                                                             \
            __asm__ volatile(TWELVE(OP)::: CLOBBERS);                                              \
    }
PEAK_LOOP(run_dpbusd, DPBUSD)
PEAK_LOOP(run_maddubs, MADDUBS)
PEAK_LOOP(run_fma512, FMA512)
PEAK_LOOP(run_fma256, FMA256)

/* Operations of the twelve instructions; a maddubs still needs half a maddwd, which is not counted. */
static void peak_loops(void (**ret_int8)(size_t), double *ret_int8_ops, void (**ret_fma)(size_t),
                       double *ret_fma_ops)
{
    bool wide = cpu_tiers() & TIER_avx512;

    *ret_int8 = wide ? run_dpbusd : run_maddubs;
    *ret_int8_ops = 12 * (wide ? 128 : 64);
    *ret_fma = wide ? run_fma512 : run_fma256;
    *ret_fma_ops = 12 * (wide ? 32 : 16);
}

__attribute__((target("avx2"))) uint64_t machine_read(const void *at, size_t bytes)
{
    const char *from = at;
    __m256i a[8] = {_mm256_setzero_si256()};

    for (size_t i = 0; i + 256 <= bytes; i += 256)
        for (size_t j = 0; j < 8; j++)
            a[j] = _mm256_or_si256(a[j], _mm256_loadu_si256((const __m256i *)(from + i + 32 * j)));
    for (size_t j = 1; j < 8; j++)
        a[0] = _mm256_or_si256(a[0], a[j]);
    return (uint64_t)_mm256_extract_epi64(a[0], 0);
}
#else
static void peak_loops(void (**ret_int8)(size_t), double *ret_int8_ops, void (**ret_fma)(size_t),
                       double *ret_fma_ops)
{
    *ret_int8 = *ret_fma = NULL;
    *ret_int8_ops = *ret_fma_ops = 0;
}

uint64_t machine_read(const void *at, size_t bytes)
{
    const char *from = at;
    uint64_t sum = 0, v;

    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        memcpy(&v, from + i, sizeof(v));
        sum |= v;
    }
    return sum;
}
#endif

/* Gop/s of a burst of about a millisecond. */
static double burst(void (*loop)(size_t), double ops)
{
    size_t n = 500000;
    double t = machine_now_s();

    if (!loop)
        return 0;
    loop(n);
    t = machine_now_s() - t;
    return ops * (double)n / t * 1e-9;
}

void machine_burst(double *ret_int8, double *ret_f32)
{
    void (*int8)(size_t), (*fma)(size_t);
    double int8_ops, fma_ops;

    peak_loops(&int8, &int8_ops, &fma, &fma_ops);
    *ret_int8 = burst(int8, int8_ops);
    *ret_f32 = burst(fma, fma_ops);
}

void machine_peaks(double *ret_int8, double *ret_f32)
{
    *ret_int8 = *ret_f32 = 0;
    for (int i = 0; i < SAMPLES; i++) {
        double int8, f32;

        machine_burst(&int8, &f32);
        *ret_int8 = int8 > *ret_int8 ? int8 : *ret_int8;
        *ret_f32 = f32 > *ret_f32 ? f32 : *ret_f32;
    }
}
