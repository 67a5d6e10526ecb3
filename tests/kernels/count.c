/*
 * How many formats each tier has a kernel of each op for, and whether one is
 * missing: a file that is gone, or was never written, would not fail otherwise.
 */
#include <stdio.h>
#include <string.h>

#include "tests/kernels/check.h"

/* The formats that models come in, by how often they are met. */
#define FIRST_TWELVE                                                                               \
    "q4_k", "q6_k", "q5_k", "q8_0", "q4_0", "q4_1", "iq4_xs", "iq4_nl", "mxfp4", "q3_k", "q2_k",   \
        "q5_0"

static const char *const weights[] = {
    FIRST_TWELVE, "q5_1",  "iq3_s", "iq3_xxs", "iq2_s", "iq2_xs", "iq2_xxs", "iq1_s", "iq1_m",
    "tq1_0",      "tq2_0", "nvfp4", "bf16",    "f16",   "f32",    "q2_0",    "q1_0",  NULL,
};
static const char *const caches[] = {"f16", "q8_0", "q4_0", "f32", NULL};
static const char *const activations[] = {"q8_32", "q8_256", NULL};
static const char *const floats[] = {"f32", NULL};
#if defined(__aarch64__)
static const char *const first_weights[] = {FIRST_TWELVE, "q5_1", "bf16", "f16", "f32", NULL};
#endif

static const struct need {
    const char *tier;
    const char *op;
    const char *const *formats;
} needs[] = {
    {"scalar", "matvec", weights},       {"scalar", "quantize", activations},
    {"scalar", "attn", caches},
#if defined(__x86_64__)
    {"avx2", "matvec", weights},         {"avx2", "gemm", weights},
    {"avx2", "quantize", activations},   {"avx2", "attn", caches},
    {"avx2", "attn_merge", floats},      {"avx512", "matvec", weights},
    {"avx512", "gemm", weights},         {"avx512", "pack", activations},
    {"avx512", "quantize", activations}, {"avx512", "attn", caches},
    {"avx512", "attn_merge", floats},
#elif defined(__aarch64__)
    {"neon", "matvec", first_weights}, {"neon", "quantize", activations},
    {"neon", "attn", caches},          {"neon", "attn_merge", floats},
#endif
};
#define N_NEEDS (sizeof(needs) / sizeof(needs[0]))

static bool have(const char *tier, const char *op, const char *fmt)
{
    for (size_t i = 0; i < check_n_rows; i++)
        if (strcmp(check_rows[i].tier, tier) == 0 && strcmp(check_rows[i].op, op) == 0 &&
            strcmp(check_rows[i].fmt, fmt) == 0)
            return true;
    return false;
}

/* Is row i the first of its tier, or of its tier and op? */
static bool is_first(size_t i, bool of_op)
{
    for (size_t j = 0; j < i; j++)
        if (strcmp(check_rows[j].tier, check_rows[i].tier) == 0 &&
            (!of_op || strcmp(check_rows[j].op, check_rows[i].op) == 0))
            return false;
    return true;
}

static void print_tier(const char *tier)
{
    printf("%s:", tier);
    for (size_t i = 0; i < check_n_rows; i++) {
        size_t n = 0;

        if (strcmp(check_rows[i].tier, tier) != 0 || !is_first(i, true))
            continue;
        for (size_t j = i; j < check_n_rows; j++)
            n += strcmp(check_rows[j].tier, tier) == 0 &&
                 strcmp(check_rows[j].op, check_rows[i].op) == 0;
        printf(" %s %zu", check_rows[i].op, n);
    }
    putchar('\n');
}

size_t count_kernels(void)
{
    size_t missing = 0;

    for (size_t i = 0; i < check_n_rows; i++)
        if (is_first(i, false))
            print_tier(check_rows[i].tier);
    for (size_t i = 0; i < N_NEEDS; i++)
        for (const char *const *f = needs[i].formats; *f; f++)
            if (!have(needs[i].tier, needs[i].op, *f)) {
                printf("missing: %s_%s_%s\n", needs[i].op, *f, needs[i].tier);
                missing++;
            }
    return missing;
}
