/*
 * cpuid - the tiers of this machine.  A tier is a folder of kernels and a bit
 * here; TIER_scalar is always there.
 */
#pragma once

#include <sched.h>
#include <stdbool.h>

enum tier {
    TIER_scalar = 1 << 0,
    TIER_avx2 = 1 << 1,    /* AVX2, FMA, F16C */
    TIER_avx512 = 1 << 2,  /* F, BW, DQ, VL, VNNI, VBMI, GFNI */
    TIER_neon = 1 << 3,    /* the baseline of ARMv8-A */
    TIER_dotprod = 1 << 4, /* SDOT */
    TIER_i8mm = 1 << 5,    /* SMMLA, and SDOT */
};

/* What the processor and the operating system offer, as a mask. */
unsigned cpu_tiers(void);

/* Instructions of an x86 processor that a tier needs. */
enum cpu_feature {
    CPU_AVX2 = 1 << 0,
    CPU_FMA = 1 << 1,
    CPU_F16C = 1 << 2,
    CPU_AVX512F = 1 << 3,
    CPU_AVX512BW = 1 << 4,
    CPU_AVX512DQ = 1 << 5,
    CPU_AVX512VL = 1 << 6,
    CPU_AVX512VNNI = 1 << 7,
    CPU_AVX512VBMI = 1 << 8,
    CPU_GFNI = 1 << 9,
};

/* The tiers whose every feature is there: a processor that lacks one of a wide tier gets the one below. */
unsigned cpu_tiers_of_x86(unsigned features);

/* The mask capped at the tier of that name and those below it ("auto": as it is); 0 when the name is none. */
unsigned cpu_tiers_cap(unsigned tiers, const char *name);

const char *cpu_tier_name(unsigned tiers); /* of the widest bit */

/* Is cpu, of those usable, the lowest hardware thread of its core?  Without topology files every cpu is a core. */
bool cpu_is_core(int cpu, const cpu_set_t *usable, size_t usable_bytes);

/* Physical cores that this process may use (affinity, SMT siblings counted once): the default of --threads. */
unsigned cpu_default_threads(void);
