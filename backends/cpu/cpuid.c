/* What this processor offers, and how many of its cores are ours; see cpuid.h. */
#include "backends/cpu/cpuid.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

static const struct {
    const char *name;
    unsigned bit;
    unsigned with_below;
} tier_names[] = {
    {"scalar", TIER_scalar, TIER_scalar},
    {"avx2", TIER_avx2, TIER_scalar | TIER_avx2},
    {"avx512", TIER_avx512, TIER_scalar | TIER_avx2 | TIER_avx512},
    {"neon", TIER_neon, TIER_scalar | TIER_neon},
    {"dotprod", TIER_dotprod, TIER_scalar | TIER_neon | TIER_dotprod},
    {"i8mm", TIER_i8mm, TIER_scalar | TIER_neon | TIER_dotprod | TIER_i8mm},
};
#define N_TIERS (sizeof(tier_names) / sizeof(tier_names[0]))

unsigned cpu_tiers_of_x86(unsigned features)
{
    const unsigned avx2 = CPU_AVX2 | CPU_FMA | CPU_F16C;
    const unsigned avx512 = avx2 | CPU_AVX512F | CPU_AVX512BW | CPU_AVX512DQ | CPU_AVX512VL |
                            CPU_AVX512VNNI | CPU_AVX512VBMI | CPU_GFNI;
    unsigned tiers = TIER_scalar;

    if ((features & avx2) == avx2)
        tiers |= TIER_avx2;
    if ((features & avx512) == avx512)
        tiers |= TIER_avx512;
    return tiers;
}

#if defined(__x86_64__)
/* The builtin asks the operating system (XCR0) too, not the processor alone. */
static unsigned features_of_x86(void)
{
    unsigned f = 0;

    __builtin_cpu_init();
    f |= __builtin_cpu_supports("avx2") ? CPU_AVX2 : 0;
    f |= __builtin_cpu_supports("fma") ? CPU_FMA : 0;
    f |= __builtin_cpu_supports("f16c") ? CPU_F16C : 0;
    f |= __builtin_cpu_supports("avx512f") ? CPU_AVX512F : 0;
    f |= __builtin_cpu_supports("avx512bw") ? CPU_AVX512BW : 0;
    f |= __builtin_cpu_supports("avx512dq") ? CPU_AVX512DQ : 0;
    f |= __builtin_cpu_supports("avx512vl") ? CPU_AVX512VL : 0;
    f |= __builtin_cpu_supports("avx512vnni") ? CPU_AVX512VNNI : 0;
    f |= __builtin_cpu_supports("avx512vbmi") ? CPU_AVX512VBMI : 0;
    f |= __builtin_cpu_supports("gfni") ? CPU_GFNI : 0;
    return f;
}
#endif

unsigned cpu_tiers(void)
{
    unsigned tiers = TIER_scalar;

#if defined(__x86_64__)
    tiers = cpu_tiers_of_x86(features_of_x86());
#elif defined(__aarch64__)
    tiers |= TIER_neon; /* part of the architecture's baseline */
    if (getauxval(AT_HWCAP) & HWCAP_ASIMDDP)
        tiers |= TIER_dotprod;
    if ((tiers & TIER_dotprod) && (getauxval(AT_HWCAP2) & HWCAP2_I8MM))
        tiers |= TIER_i8mm;
#endif
    return tiers;
}

unsigned cpu_tiers_cap(unsigned tiers, const char *name)
{
    if (strcmp(name, "auto") == 0)
        return tiers;
    for (size_t i = 0; i < N_TIERS; i++)
        if (strcmp(name, tier_names[i].name) == 0)
            return tiers & tier_names[i].with_below;
    return 0;
}

const char *cpu_tier_name(unsigned tiers)
{
    const char *name = tier_names[0].name;

    for (size_t i = 0; i < N_TIERS; i++)
        if (tiers & tier_names[i].bit)
            name = tier_names[i].name;
    return name;
}

/* The lowest-numbered usable sibling stands for its core; without topology files every cpu is a core. */
static int first_sibling(int cpu, const cpu_set_t *set, size_t set_bytes)
{
    char path[96];
    char text[256] = "";
    char *at = text;
    FILE *f;

    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
             cpu);
    f = fopen(path, "re");
    if (!f)
        return cpu;
    if (!fgets(text, sizeof(text), f))
        text[0] = '\0';
    fclose(f);

    /* "0,64" or "0-1": the list ascends, so the first usable one is the lowest. */
    while (*at >= '0' && *at <= '9') {
        char *end;
        long from = strtol(at, &end, 10);
        long to = from;

        if (*end == '-')
            to = strtol(end + 1, &end, 10);
        for (long i = from; i <= to && i < cpu; i++)
            if (CPU_ISSET_S((size_t)i, set_bytes, set))
                return (int)i;
        at = *end == ',' ? end + 1 : end;
    }
    return cpu;
}

bool cpu_is_core(int cpu, const cpu_set_t *usable, size_t usable_bytes)
{
    return first_sibling(cpu, usable, usable_bytes) == cpu;
}

/* The affinity mask already holds what the cgroup's cpuset leaves us. */
unsigned cpu_default_threads(void)
{
    unsigned n = 0;

    for (int cpus = 1024; cpus <= 1 << 20 && n == 0; cpus *= 4) {
        cpu_set_t *set = CPU_ALLOC((size_t)cpus);
        size_t bytes = CPU_ALLOC_SIZE((size_t)cpus);

        if (!set)
            break;
        CPU_ZERO_S(bytes, set);
        if (sched_getaffinity(0, bytes, set) == 0)
            for (int i = 0; i < cpus; i++)
                if (CPU_ISSET_S((size_t)i, bytes, set) && cpu_is_core(i, set, bytes))
                    n++;
        CPU_FREE(set);
    }
    return n ? n : 1;
}
