/* The table of formats against the numbers of the file format. */
#include <check.h>
#include <string.h>

#include "backends/formats/format.h"

TCase *tcase_formats_format(void);

/* GGUF number, name, weights and bytes of a block, as the file format fixes them. */
static const struct {
    uint32_t type;
    const char *name;
    uint32_t elems, bytes;
} rows[] = {
    {0, "f32", 1, 4},         {1, "f16", 1, 2},         {2, "q4_0", 32, 18},
    {3, "q4_1", 32, 20},      {6, "q5_0", 32, 22},      {7, "q5_1", 32, 24},
    {8, "q8_0", 32, 34},      {10, "q2_k", 256, 84},    {11, "q3_k", 256, 110},
    {12, "q4_k", 256, 144},   {13, "q5_k", 256, 176},   {14, "q6_k", 256, 210},
    {16, "iq2_xxs", 256, 66}, {17, "iq2_xs", 256, 74},  {18, "iq3_xxs", 256, 98},
    {19, "iq1_s", 256, 50},   {20, "iq4_nl", 32, 18},   {21, "iq3_s", 256, 110},
    {22, "iq2_s", 256, 82},   {23, "iq4_xs", 256, 136}, {24, "i8", 1, 1},
    {25, "i16", 1, 2},        {26, "i32", 1, 4},        {27, "i64", 1, 8},
    {28, "f64", 1, 8},        {29, "iq1_m", 256, 56},   {30, "bf16", 1, 2},
    {34, "tq1_0", 256, 54},   {35, "tq2_0", 256, 66},   {39, "mxfp4", 32, 17},
    {40, "nvfp4", 64, 36},    {41, "q1_0", 128, 18},    {42, "q2_0", 64, 18},
};

#define N_ROWS (sizeof rows / sizeof *rows)

START_TEST(a_type_of_the_file_format_has_its_sizes)
{
    const struct format *f = format_of_gguf(rows[_i].type);

    ck_assert_ptr_nonnull(f);
    ck_assert_str_eq(f->name, rows[_i].name);
    ck_assert_uint_eq(f->gguf_type, rows[_i].type);
    ck_assert_uint_eq(f->block_elems, rows[_i].elems);
    ck_assert_uint_eq(f->block_bytes, rows[_i].bytes);
    ck_assert_ptr_eq(format_of_name(rows[_i].name), f);
    ck_assert_ptr_eq(format_of(format_id_of(f)), f);
    ck_assert_uint_eq(format_row_bytes(f, 512), 512 / rows[_i].elems * rows[_i].bytes);
}
END_TEST

START_TEST(there_is_no_format_beyond_the_file_format)
{
    ck_assert_uint_eq(FORMAT_COUNT, N_ROWS);
}
END_TEST

START_TEST(removed_and_unknown_types_have_no_format)
{
    static const uint32_t removed[] = {4, 5, 9, 15, 31, 32, 33, 36, 37, 38, 43, 1000, UINT32_MAX};

    for (size_t i = 0; i < sizeof removed / sizeof *removed; i++)
        ck_assert_ptr_null(format_of_gguf(removed[i]));
    ck_assert_ptr_null(format_of_name("q4_K"));
    ck_assert_ptr_null(format_of_name(""));
    ck_assert_ptr_null(format_of(FORMAT_NONE));
    ck_assert_ptr_null(format_of((enum format_id) - 1));
    ck_assert_int_eq(format_id_of(NULL), FORMAT_NONE);
}
END_TEST

START_TEST(weights_of_256_meet_activations_of_256_and_smaller_ones_those_of_32)
{
    for (int i = 0; i < FORMAT_COUNT; i++) {
        const struct format *f = format_table[i];

        ck_assert_int_eq(f->act, f->block_elems == 1     ? ACT_F32
                                 : f->block_elems == 256 ? ACT_Q8_256
                                                         : ACT_Q8_32);
    }
}
END_TEST

TCase *tcase_formats_format(void)
{
    TCase *tc = tcase_create("format");

    tcase_add_loop_test(tc, a_type_of_the_file_format_has_its_sizes, 0, N_ROWS);
    tcase_add_test(tc, there_is_no_format_beyond_the_file_format);
    tcase_add_test(tc, removed_and_unknown_types_have_no_format);
    tcase_add_test(tc, weights_of_256_meet_activations_of_256_and_smaller_ones_those_of_32);
    return tc;
}
