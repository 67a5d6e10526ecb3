/*
 * cpuid - the tiers of this machine.  A tier is a folder of kernels and a bit
 * here; TIER_scalar is always there.
 */
#pragma once

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

/* The mask capped at the tier of that name and those below it ("auto": as it is); 0 when the name is none. */
unsigned cpu_tiers_cap(unsigned tiers, const char *name);

const char *cpu_tier_name(unsigned tiers); /* of the widest bit */

/* Physical cores that this process may use (affinity, SMT siblings counted once): the default of --threads. */
unsigned cpu_default_threads(void);
