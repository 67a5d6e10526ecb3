/* Shapes and strides. */
#include <check.h>

#include "backends/tensor.h"

TCase *tcase_backends_tensor(void);

START_TEST(strides_follow_the_blocks_of_the_format)
{
    struct tensor t = tensor_make(format_of_name("q4_0"), NULL, 64, 3, 5, 7);

    ck_assert_uint_eq(t.stride[0], 18);
    ck_assert_uint_eq(t.stride[1], 36);
    ck_assert_uint_eq(t.stride[2], 108);
    ck_assert_uint_eq(t.stride[3], 540);
    ck_assert_uint_eq(tensor_rows(&t), 105);
    ck_assert_uint_eq(tensor_bytes(&t), 7 * 540);
}
END_TEST

START_TEST(bytes_of_a_view_end_with_its_last_row)
{
    struct tensor t = tensor_make(format_of_name("f32"), NULL, 4, 3, 1, 1);

    t.stride[1] = 100;
    ck_assert_uint_eq(tensor_bytes(&t), 216);
}
END_TEST

START_TEST(an_empty_tensor_has_no_bytes)
{
    struct tensor t = tensor_make(format_of_name("f32"), NULL, 4, 0, 1, 1);

    ck_assert_uint_eq(tensor_bytes(&t), 0);
}
END_TEST

START_TEST(a_row_is_found_by_its_stride)
{
    float x[12] = {0};
    struct tensor t = tensor_make(format_of_name("f32"), x, 4, 3, 1, 1);

    ck_assert_ptr_eq(tensor_f32(&t, 2), x + 8);
}
END_TEST

TCase *tcase_backends_tensor(void)
{
    TCase *tc = tcase_create("tensor");

    tcase_add_test(tc, strides_follow_the_blocks_of_the_format);
    tcase_add_test(tc, bytes_of_a_view_end_with_its_last_row);
    tcase_add_test(tc, an_empty_tensor_has_no_bytes);
    tcase_add_test(tc, a_row_is_found_by_its_stride);
    return tc;
}
