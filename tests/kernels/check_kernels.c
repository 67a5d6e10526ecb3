/* Proves every row of kernels.def: options, the rows, faults, the count; see check.h. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backends/cpu/cpuid.h"
#include "tests/kernels/check.h"

#define ROW(op, fmt, tier) KERNEL(op, fmt, tier);
#include "gen/kernels.def"
#undef ROW

#define TWIN_OF_gemm(fmt)                                                                          \
    {                                                                                              \
        .matvec = matvec_##fmt##_scalar                                                            \
    }
#define TWIN_OF_pack(fmt)                                                                          \
    {                                                                                              \
        .quantize = quantize_##fmt##_scalar                                                        \
    }
#define TWIN_OF_quantize(fmt)                                                                      \
    {                                                                                              \
        .quantize = quantize_##fmt##_scalar                                                        \
    }
#define TWIN_OF_matvec(fmt)                                                                        \
    {                                                                                              \
        .matvec = matvec_##fmt##_scalar                                                            \
    }
#define TWIN_OF_attn(fmt)                                                                          \
    {                                                                                              \
        .attn = attn_##fmt##_scalar                                                                \
    }
#define TWIN_OF_attn_merge(fmt)                                                                    \
    {                                                                                              \
        .attn_merge = attn_merge_##fmt##_scalar                                                    \
    }
#define TWIN_OF_encode(fmt)                                                                        \
    {                                                                                              \
        .encode = encode_##fmt##_scalar                                                            \
    }
#define TWIN_OF_rmsnorm(fmt)                                                                       \
    {                                                                                              \
        .rmsnorm = rmsnorm_##fmt##_scalar                                                          \
    }
#define TWIN_OF_add(fmt)                                                                           \
    {                                                                                              \
        .add = add_##fmt##_scalar                                                                  \
    }
#define TWIN_OF_mul(fmt)                                                                           \
    {                                                                                              \
        .mul = mul_##fmt##_scalar                                                                  \
    }
#define TWIN_OF_scale(fmt)                                                                         \
    {                                                                                              \
        .scale = scale_##fmt##_scalar                                                              \
    }
#define TWIN_OF_silu_mul(fmt)                                                                      \
    {                                                                                              \
        .silu_mul = silu_mul_##fmt##_scalar                                                        \
    }
#define TWIN_OF_gelu_mul(fmt)                                                                      \
    {                                                                                              \
        .gelu_mul = gelu_mul_##fmt##_scalar                                                        \
    }
#define TWIN_OF_clamped_mul(fmt)                                                                   \
    {                                                                                              \
        .clamped_mul = clamped_mul_##fmt##_scalar                                                  \
    }
#define TWIN_OF_softcap(fmt)                                                                       \
    {                                                                                              \
        .softcap = softcap_##fmt##_scalar                                                          \
    }
#define TWIN_OF_layernorm(fmt)                                                                     \
    {                                                                                              \
        .layernorm = layernorm_##fmt##_scalar                                                      \
    }
#define TWIN_OF_sigmoid_mul(fmt)                                                                   \
    {                                                                                              \
        .sigmoid_mul = sigmoid_mul_##fmt##_scalar                                                  \
    }
#define TWIN_OF_softplus(fmt)                                                                      \
    {                                                                                              \
        .softplus = softplus_##fmt##_scalar                                                        \
    }
#define TWIN_OF_exp_mul(fmt)                                                                       \
    {                                                                                              \
        .exp_mul = exp_mul_##fmt##_scalar                                                          \
    }
#define TWIN_OF_conv(fmt)                                                                          \
    {                                                                                              \
        .conv = conv_##fmt##_scalar                                                                \
    }
#define TWIN_OF_delta(fmt)                                                                         \
    {                                                                                              \
        .delta = delta_##fmt##_scalar                                                              \
    }
#define TWIN_OF_wkv(fmt)                                                                           \
    {                                                                                              \
        .wkv = wkv_##fmt##_scalar                                                                  \
    }
#define TWIN_OF_ssm(fmt)                                                                           \
    {                                                                                              \
        .ssm = ssm_##fmt##_scalar                                                                  \
    }
#define TWIN_OF_softmax(fmt)                                                                       \
    {                                                                                              \
        .softmax = softmax_##fmt##_scalar                                                          \
    }
#define TWIN_OF_rope(fmt)                                                                          \
    {                                                                                              \
        .rope = rope_##fmt##_scalar                                                                \
    }
#define TWIN_OF_rope_neox(fmt)                                                                     \
    {                                                                                              \
        .rope_neox = rope_neox_##fmt##_scalar                                                      \
    }

const struct row check_rows[] = {
#define ROW(op_, fmt_, tier_)                                                                      \
    {                                                                                              \
        .op = #op_,                                                                                \
        .fmt = #fmt_,                                                                              \
        .tier = #tier_,                                                                            \
        .tier_bit = TIER_##tier_,                                                                  \
        .kernel = {.op_ = op_##_##fmt_##_##tier_},                                                 \
        .twin = TWIN_OF_##op_(fmt_),                                                               \
        .check = check_##op_,                                                                      \
    },
#include "gen/kernels.def"
#undef ROW
};
const size_t check_n_rows = sizeof(check_rows) / sizeof(check_rows[0]);

unsigned check_thin = 1;

static struct options {
    const char *only;
    const char *cpu;
    uint64_t seed;
    unsigned threads;
    bool bench;
} options = {.cpu = "auto", .threads = 1};

/* What runs now, for the handler. */
static char running[128];
static unsigned told;

bool row_is_twin(const struct row *r)
{
    return r->kernel.any == r->twin.any;
}

int check_fail(const struct row *r, const char *fmt, ...)
{
    va_list args;

    if (told++ >= 3)
        return 1;
    printf("%s_%s_%s: ", r->op, r->fmt, r->tier);
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    putchar('\n');
    return 1;
}

/* Only async-signal-safe calls: the heap may be what broke. */
static void on_fault(int sig)
{
    static const char *const what[] = {": faulted (SIGSEGV)\n", ": faulted (SIGBUS)\n",
                                       ": illegal instruction\n", ": arithmetic fault\n"};
    const char *text = what[sig == SIGBUS ? 1 : sig == SIGILL ? 2 : sig == SIGFPE ? 3 : 0];

    if (write(STDOUT_FILENO, running, strlen(running)) < 0 ||
        write(STDOUT_FILENO, text, strlen(text)) < 0)
        _exit(2);
    _exit(1);
}

static void catch_faults(void)
{
    struct sigaction act = {.sa_handler = on_fault};

    sigaction(SIGSEGV, &act, NULL);
    sigaction(SIGBUS, &act, NULL);
    sigaction(SIGILL, &act, NULL);
    sigaction(SIGFPE, &act, NULL);
}

static int usage(const char *name)
{
    fprintf(stderr,
            "usage: %s [--seed N] [--only TEXT] [--cpu TIER] [--thin N] [--bench] [--threads N]\n"
            "  --only   rows whose name op_format_tier contains TEXT\n"
            "  --cpu    cap the tier, as rnbd's setting does\n"
            "  --thin   try one in N of the shapes of matrices, and no long rows\n"
            "  --bench  measure instead of check\n",
            name);
    return 2;
}

static int parse_options(int argc, char **argv)
{
    options.seed = (uint64_t)time(NULL);
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;

        if (strcmp(argv[i], "--bench") == 0) {
            options.bench = true;
            continue;
        }
        if (!value)
            return usage(argv[0]);
        if (strcmp(argv[i], "--seed") == 0)
            options.seed = strtoull(value, NULL, 0);
        else if (strcmp(argv[i], "--only") == 0)
            options.only = value;
        else if (strcmp(argv[i], "--cpu") == 0)
            options.cpu = value;
        else if (strcmp(argv[i], "--threads") == 0)
            options.threads = (unsigned)strtoul(value, NULL, 0);
        else if (strcmp(argv[i], "--thin") == 0)
            check_thin = (unsigned)strtoul(value, NULL, 0);
        else
            return usage(argv[0]);
        i++;
    }
    if (options.threads < 1 || options.threads > 64 || check_thin < 1)
        return usage(argv[0]);
    return 0;
}

int main(int argc, char **argv)
{
    size_t passed = 0, failed = 0, skipped = 0;
    unsigned tiers;
    int r = parse_options(argc, argv);

    if (r)
        return r;
    tiers = cpu_tiers_cap(cpu_tiers(), options.cpu);
    if (!tiers) {
        fprintf(stderr, "no tier is named '%s'\n", options.cpu);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("tier %s, seed %llu\n", cpu_tier_name(tiers), (unsigned long long)options.seed);
    catch_faults();
    if (options.bench)
        bench_machine(options.threads);

    for (size_t i = 0; i < check_n_rows; i++) {
        const struct row *row = &check_rows[i];

        snprintf(running, sizeof(running), "%s_%s_%s", row->op, row->fmt, row->tier);
        if (options.only && !strstr(running, options.only))
            continue;
        if (!(tiers & row->tier_bit)) {
            skipped++;
            continue;
        }
        told = 0;
        check_seed(options.seed);
        if (options.bench)
            bench_row(row, options.threads);
        else if (row->check(row) == 0)
            passed++;
        else
            failed++;
    }
    if (!options.bench && !options.only)
        failed += count_kernels();
    if (!options.bench)
        printf("%zu passed, %zu failed, %zu skipped\n", passed, failed, skipped);
    return failed ? 1 : 0;
}
