/* The directory of tensors: shapes, types, places. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/alloc.h"
#include "tests/unit/gguf/helper.h"

#define F32  0u
#define Q4_0 2u
#define Q4_K 12u

START_TEST(tensors_keep_their_order_shape_and_place)
{
    struct gguf_writer w = {0};
    struct gguf *g;
    const struct gguf_tensor *t;
    float data[] = {1, 2, 3};
    float back[3];

    gguf_writer_string(&w, "general.architecture", "llama");
    gguf_writer_tensor(&w, "b", Q4_0, 2, (const uint64_t[]){64, 3}, NULL);
    gguf_writer_tensor(&w, "a", F32, 1, (const uint64_t[]){3}, data);
    g = open_written(&w);
    ck_assert_uint_eq(gguf_n_tensors(g), 2);
    t = gguf_tensor_at(g, 0);
    ck_assert(view_is(t->name, "b") && t->n_dims == 2 && t->dims[0] == 64 && t->dims[1] == 3);
    ck_assert(t->dims[2] == 1 && t->dims[3] == 1 && t->bytes == 3 * 2 * 18 && t->part == 0);
    ck_assert_str_eq(t->fmt->name, "q4_0");
    t = gguf_find_tensor(g, "a");
    ck_assert_ptr_eq(t, gguf_tensor_at(g, 1));
    ck_assert_uint_eq(t->offset % 32, 0);
    ck_assert_int_eq(pread(gguf_fd(g, 0), back, sizeof back, (off_t)t->offset), (int)sizeof back);
    ck_assert_int_eq(memcmp(back, data, sizeof data), 0);
    ck_assert_ptr_null(gguf_find_tensor(g, "c"));
    gguf_close(g);
}
END_TEST

static const uint32_t bad_alignments[] = {0, 1, 4, 3, 33, 48, 131072, 2147483648u, UINT32_MAX};

START_TEST(alignment_is_a_power_of_two_within_reason)
{
    struct gguf_writer w = {0};

    gguf_writer_u32(&w, "general.alignment", bad_alignments[_i]);
    gguf_writer_tensor(&w, "a", F32, 1, (const uint64_t[]){3}, NULL);
    expect_refused(&w, ERR_FORMAT, "general.alignment");
}
END_TEST

static const uint32_t alignments[] = {8, 16, 32, 64, 4096, 65536};

START_TEST(data_lies_where_the_alignment_says)
{
    struct gguf_writer w = {.alignment = alignments[_i]};
    struct gguf *g;

    gguf_writer_u32(&w, "general.alignment", alignments[_i]);
    gguf_writer_tensor(&w, "a", F32, 1, (const uint64_t[]){3}, NULL);
    gguf_writer_tensor(&w, "b", F32, 1, (const uint64_t[]){3}, NULL);
    g = open_written(&w);
    ck_assert_uint_eq(gguf_tensor_at(g, 0)->offset % alignments[_i], 0);
    ck_assert_uint_eq(gguf_tensor_at(g, 1)->offset - gguf_tensor_at(g, 0)->offset,
                      MAX(alignments[_i], alignments[_i] == 8 ? 16u : 12u));
    gguf_close(g);
}
END_TEST

START_TEST(an_alignment_that_is_no_integer_is_refused)
{
    struct gguf_writer w = {0};

    gguf_writer_string(&w, "general.alignment", "32");
    gguf_writer_tensor(&w, "a", F32, 1, (const uint64_t[]){3}, NULL);
    expect_refused(&w, ERR_FORMAT, "general.alignment");
}
END_TEST

START_TEST(an_offset_off_the_alignment_is_refused)
{
    struct gguf_writer w = {.trailing_bytes = 64};
    struct gguf_writer_tensor *t = gguf_writer_tensor(&w, "a", F32, 1, (const uint64_t[]){3}, NULL);

    t->fixed_offset = true;
    t->offset = 16;
    expect_refused(&w, ERR_FORMAT, "multiple of the alignment");
}
END_TEST

static const uint64_t far_offsets[] = {1 << 20, (uint64_t)1 << 40, (uint64_t)1 << 63,
                                       UINT64_MAX - 31};

START_TEST(an_offset_beyond_the_file_is_refused)
{
    struct gguf_writer w = {0};
    struct gguf_writer_tensor *t = gguf_writer_tensor(&w, "a", F32, 1, (const uint64_t[]){3}, NULL);

    t->fixed_offset = true;
    t->offset = far_offsets[_i];
    expect_refused(&w, ERR_FORMAT, "past the end of the file");
}
END_TEST

START_TEST(a_tensor_may_end_at_the_end_of_the_file_and_not_one_byte_later)
{
    struct gguf_writer w = {0};

    gguf_writer_tensor(&w, "a", F32, 1, (const uint64_t[]){3}, NULL);
    gguf_close(open_written(&w));
    gguf_writer_tensor(&w, "a", F32, 1, (const uint64_t[]){3}, NULL);
    w.cut_bytes = 1;
    expect_refused(&w, ERR_FORMAT, "past the end of the file");
}
END_TEST

START_TEST(tensors_that_overlap_are_refused_and_gaps_are_not)
{
    struct gguf_writer w = {.trailing_bytes = 4096};
    struct gguf_writer_tensor *t;

    gguf_writer_tensor(&w, "a", F32, 1, (const uint64_t[]){40}, NULL);
    t = gguf_writer_tensor(&w, "b", F32, 1, (const uint64_t[]){3}, NULL);
    t->fixed_offset = true;
    t->offset = 128; /* a takes 160 */
    expect_refused(&w, ERR_FORMAT, "'a' and 'b' overlap");
    w.trailing_bytes = 4096;
    t = gguf_writer_tensor(&w, "b", F32, 1, (const uint64_t[]){3}, NULL);
    t->fixed_offset = true;
    t->offset = 1024;
    gguf_writer_tensor(&w, "a", F32, 1, (const uint64_t[]){3}, NULL)->fixed_offset = true;
    gguf_close(open_written(&w));
}
END_TEST

START_TEST(the_same_name_twice_is_refused)
{
    struct gguf_writer w = {0};

    gguf_writer_tensor(&w, "a", F32, 1, (const uint64_t[]){3}, NULL);
    gguf_writer_tensor(&w, "a", F32, 1, (const uint64_t[]){3}, NULL);
    expect_refused(&w, ERR_FORMAT, "'a' twice");
}
END_TEST

START_TEST(names_are_text_of_1_to_63_bytes)
{
    struct gguf_writer w = {0};
    struct gguf_writer_tensor *t;

    gguf_writer_tensor(&w, "", F32, 1, (const uint64_t[]){3}, NULL);
    expect_refused(&w, ERR_FORMAT, "without a name");
    t = gguf_writer_tensor(&w, "x", F32, 1, (const uint64_t[]){3}, NULL);
    memset(t->name, 'x', 64);
    t->name_len = 64;
    expect_refused(&w, ERR_FORMAT, "allows 63");
    t = gguf_writer_tensor(&w, "x", F32, 1, (const uint64_t[]){3}, NULL);
    memset(t->name, 'x', 63);
    t->name_len = 63;
    gguf_close(open_written(&w));
    t = gguf_writer_tensor(&w, "a b", F32, 1, (const uint64_t[]){3}, NULL);
    t->name[1] = '\0';
    expect_refused(&w, ERR_FORMAT, "not text");
}
END_TEST

static const struct {
    uint32_t n_dims;
    uint64_t dims[5];
    const char *part;
} bad_shapes[] = {
    {0, {0}, "0 dimensions"},
    {5, {1, 1, 1, 1, 1}, "5 dimensions"},
    {0x80000000u, {1}, "2147483648 dimensions"},
    {2, {0, 1}, "dimension of 0"},
    {2, {32, 0}, "dimension of 0"},
    {2, {UINT64_MAX, 1}, "2^63"},
    {2, {(uint64_t)1 << 32, (uint64_t)1 << 32}, "2^63"},
    {4, {1 << 16, 1 << 16, 1 << 16, 1 << 16}, "2^63"},
    {1, {(uint64_t)1 << 63}, "2^63"},
    {1, {(uint64_t)1 << 62}, "2^63 bytes"},
    {1, {(uint64_t)1 << 40}, "past the end"},
};

START_TEST(a_shape_that_cannot_be_is_refused)
{
    struct gguf_writer w = {0};
    struct gguf_writer_tensor *t = gguf_writer_tensor(&w, "a", F32, 1, (const uint64_t[]){3}, NULL);

    t->n_dims = bad_shapes[_i].n_dims;
    memcpy(t->dims, bad_shapes[_i].dims, sizeof bad_shapes[_i].dims);
    expect_refused(&w, ERR_FORMAT, bad_shapes[_i].part);
}
END_TEST

static const uint32_t bad_types[] = {4,  5,  9,  15, 31,  32,         33,
                                     36, 37, 38, 43, 255, 0x7fffffff, UINT32_MAX};

START_TEST(removed_and_unknown_types_are_refused_by_number)
{
    struct gguf_writer w = {0};
    char number[16];

    gguf_writer_tensor(&w, "a", F32, 1, (const uint64_t[]){256}, NULL)->type = bad_types[_i];
    snprintf(number, sizeof number, "type %u", bad_types[_i]);
    expect_refused(&w, ERR_UNSUPPORTED, number);
}
END_TEST

START_TEST(a_row_is_a_multiple_of_the_block)
{
    struct gguf_writer w = {.trailing_bytes = 4096};

    gguf_writer_tensor(&w, "a", F32, 2, (const uint64_t[]){128, 2}, NULL)->type = Q4_K;
    expect_refused(&w, ERR_FORMAT, "blocks of 256");
}
END_TEST

TCase *tcase_gguf_tensors(void);
TCase *tcase_gguf_tensors(void)
{
    TCase *tc = tcase_create("tensors");

    tcase_add_test(tc, tensors_keep_their_order_shape_and_place);
    tcase_add_loop_test(tc, alignment_is_a_power_of_two_within_reason, 0,
                        ARRAY_LEN(bad_alignments));
    tcase_add_loop_test(tc, data_lies_where_the_alignment_says, 0, ARRAY_LEN(alignments));
    tcase_add_test(tc, an_alignment_that_is_no_integer_is_refused);
    tcase_add_test(tc, an_offset_off_the_alignment_is_refused);
    tcase_add_loop_test(tc, an_offset_beyond_the_file_is_refused, 0, ARRAY_LEN(far_offsets));
    tcase_add_test(tc, a_tensor_may_end_at_the_end_of_the_file_and_not_one_byte_later);
    tcase_add_test(tc, tensors_that_overlap_are_refused_and_gaps_are_not);
    tcase_add_test(tc, the_same_name_twice_is_refused);
    tcase_add_test(tc, names_are_text_of_1_to_63_bytes);
    tcase_add_loop_test(tc, a_shape_that_cannot_be_is_refused, 0, ARRAY_LEN(bad_shapes));
    tcase_add_loop_test(tc, removed_and_unknown_types_are_refused_by_number, 0,
                        ARRAY_LEN(bad_types));
    tcase_add_test(tc, a_row_is_a_multiple_of_the_block);
    return tc;
}
