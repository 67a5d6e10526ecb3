/* The selection of kernels and the tiers it is made from. */
#include <check.h>
#include <sched.h>

#include "backends/cpu/cpuid.h"
#include "backends/cpu/kernels.h"

TCase *tcase_cpu_kernels(void);

START_TEST(a_cap_takes_a_tier_and_what_is_below_it)
{
    unsigned all = TIER_scalar | TIER_avx2 | TIER_avx512;

    ck_assert_uint_eq(cpu_tiers_cap(all, "auto"), all);
    ck_assert_uint_eq(cpu_tiers_cap(all, "avx512"), all);
    ck_assert_uint_eq(cpu_tiers_cap(all, "avx2"), TIER_scalar | TIER_avx2);
    ck_assert_uint_eq(cpu_tiers_cap(all, "scalar"), TIER_scalar);
}
END_TEST

START_TEST(a_cap_of_arm_takes_a_tier_and_what_is_below_it)
{
    unsigned all = TIER_scalar | TIER_neon | TIER_dotprod | TIER_i8mm;

    ck_assert_uint_eq(cpu_tiers_cap(all, "i8mm"), all);
    ck_assert_uint_eq(cpu_tiers_cap(all, "dotprod"), all & ~(unsigned)TIER_i8mm);
    ck_assert_uint_eq(cpu_tiers_cap(all, "neon"), TIER_scalar | TIER_neon);
    ck_assert_uint_eq(cpu_tiers_cap(all, "avx2"), TIER_scalar);
}
END_TEST

START_TEST(a_cap_never_adds_what_the_machine_lacks)
{
    ck_assert_uint_eq(cpu_tiers_cap(TIER_scalar | TIER_avx2, "avx512"), TIER_scalar | TIER_avx2);
    ck_assert_uint_eq(cpu_tiers_cap(TIER_scalar | TIER_avx2, "neon"), TIER_scalar);
}
END_TEST

START_TEST(a_name_that_is_no_tier_gives_an_empty_mask)
{
    ck_assert_uint_eq(cpu_tiers_cap(cpu_tiers(), "avx"), 0);
    ck_assert_uint_eq(cpu_tiers_cap(cpu_tiers(), ""), 0);
}
END_TEST

START_TEST(a_mask_is_called_by_its_widest_tier)
{
    ck_assert_str_eq(cpu_tier_name(TIER_scalar), "scalar");
    ck_assert_str_eq(cpu_tier_name(TIER_scalar | TIER_avx2), "avx2");
    ck_assert_str_eq(cpu_tier_name(TIER_scalar | TIER_neon), "neon");
    ck_assert_str_eq(cpu_tier_name(TIER_scalar | TIER_neon | TIER_dotprod), "dotprod");
    ck_assert_str_eq(cpu_tier_name(TIER_scalar | TIER_neon | TIER_dotprod | TIER_i8mm), "i8mm");
}
END_TEST

START_TEST(a_processor_gets_the_widest_tier_that_it_has_all_of)
{
    const unsigned haswell = CPU_AVX2 | CPU_FMA | CPU_F16C; /* Zen 1 to 3, Alder Lake, too */
    const unsigned skylake_x = haswell | CPU_AVX512F | CPU_AVX512BW | CPU_AVX512DQ | CPU_AVX512VL;
    const unsigned cascade_lake = skylake_x | CPU_AVX512VNNI;
    const unsigned ice_lake = cascade_lake | CPU_AVX512VBMI | CPU_GFNI; /* Zen 4, 5, too */

    ck_assert_uint_eq(cpu_tiers_of_x86(0), TIER_scalar);
    ck_assert_uint_eq(cpu_tiers_of_x86(CPU_AVX2 | CPU_FMA), TIER_scalar);
    ck_assert_uint_eq(cpu_tiers_of_x86(haswell), TIER_scalar | TIER_avx2);
    ck_assert_uint_eq(cpu_tiers_of_x86(haswell | CPU_GFNI), TIER_scalar | TIER_avx2);
    ck_assert_uint_eq(cpu_tiers_of_x86(skylake_x), TIER_scalar | TIER_avx2);
    ck_assert_uint_eq(cpu_tiers_of_x86(cascade_lake), TIER_scalar | TIER_avx2);
    ck_assert_uint_eq(cpu_tiers_of_x86(cascade_lake | CPU_AVX512VBMI), TIER_scalar | TIER_avx2);
    ck_assert_uint_eq(cpu_tiers_of_x86(ice_lake), TIER_scalar | TIER_avx2 | TIER_avx512);
    ck_assert_uint_eq(cpu_tiers_of_x86(ice_lake & ~(unsigned)CPU_AVX2), TIER_scalar);
}
END_TEST

START_TEST(default_threads_are_within_the_affinity)
{
    cpu_set_t set;
    unsigned n = cpu_default_threads();

    ck_assert_int_eq(sched_getaffinity(0, sizeof(set), &set), 0);
    ck_assert_uint_ge(n, 1);
    ck_assert_uint_le(n, (unsigned)CPU_COUNT(&set));
}
END_TEST

START_TEST(one_core_left_is_one_thread)
{
    cpu_set_t before, one;
    int cpu = 0;

    ck_assert_int_eq(sched_getaffinity(0, sizeof(before), &before), 0);
    while (!CPU_ISSET(cpu, &before))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
    ck_assert_uint_eq(cpu_default_threads(), 1);
    ck_assert_int_eq(sched_setaffinity(0, sizeof(before), &before), 0);
}
END_TEST

START_TEST(the_scalar_tier_multiplies_every_format)
{
    struct kernels k;

    kernels_select(&k, TIER_scalar);
    for (int f = 0; f < FORMAT_COUNT; f++)
        ck_assert_msg(k.matvec[f] != NULL, "%s has no scalar matvec", format_table[f]->name);
    ck_assert_ptr_nonnull(k.quantize[ACT_Q8_32]);
    ck_assert_ptr_nonnull(k.quantize[ACT_Q8_256]);
}
END_TEST

START_TEST(a_wider_tier_replaces_but_never_removes)
{
    struct kernels scalar, widest;

    kernels_select(&scalar, TIER_scalar);
    kernels_select(&widest, cpu_tiers());
    for (int f = 0; f < FORMAT_COUNT; f++)
        ck_assert_ptr_nonnull(widest.matvec[f]);
    if (cpu_tiers() != TIER_scalar)
        ck_assert(widest.matvec[FORMAT_q4_k] != scalar.matvec[FORMAT_q4_k]);
    ck_assert_ptr_nonnull(widest.rmsnorm);
}
END_TEST

START_TEST(what_packs_says_how_large_a_tile_is)
{
    static const char *const tiers[] = {"scalar", "avx2", "avx512", "neon", "dotprod", "i8mm"};

    for (size_t i = 0; i < sizeof(tiers) / sizeof(tiers[0]); i++) {
        struct kernels k;

        kernels_select(&k, cpu_tiers_cap(cpu_tiers(), tiers[i]));
        for (int f = 0; f < FORMAT_COUNT; f++) {
            if (!k.pack[f])
                continue;
            ck_assert_ptr_nonnull(k.gemm[f]);
            ck_assert_uint_eq(k.tile_cols[f], KERNELS_TILE_COLS);
            ck_assert_uint_eq(k.pack_bytes[f](512),
                              KERNELS_TILE_COLS * act_row_bytes(format_table[f]->act, 512));
        }
    }
}
END_TEST

START_TEST(the_tree_adds_halves)
{
    /* 2^24 + 1 is lost unless it meets its opposite first: 0 and 8 do. */
    float p[16] = {16777216.0f, 1.0f, [8] = -16777216.0f, [9] = 2.0f};

    ck_assert(kernels_tree16(p) == 3.0f);
}
END_TEST

TCase *tcase_cpu_kernels(void)
{
    TCase *tc = tcase_create("kernels");

    tcase_add_test(tc, a_cap_takes_a_tier_and_what_is_below_it);
    tcase_add_test(tc, a_cap_of_arm_takes_a_tier_and_what_is_below_it);
    tcase_add_test(tc, a_cap_never_adds_what_the_machine_lacks);
    tcase_add_test(tc, a_name_that_is_no_tier_gives_an_empty_mask);
    tcase_add_test(tc, a_mask_is_called_by_its_widest_tier);
    tcase_add_test(tc, a_processor_gets_the_widest_tier_that_it_has_all_of);
    tcase_add_test(tc, default_threads_are_within_the_affinity);
    tcase_add_test(tc, one_core_left_is_one_thread);
    tcase_add_test(tc, the_scalar_tier_multiplies_every_format);
    tcase_add_test(tc, a_wider_tier_replaces_but_never_removes);
    tcase_add_test(tc, what_packs_says_how_large_a_tile_is);
    tcase_add_test(tc, the_tree_adds_halves);
    return tc;
}
