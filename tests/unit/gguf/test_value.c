/* Typed access to metadata. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/alloc.h"
#include "tests/unit/gguf/helper.h"

static const enum gguf_type int_types[] = {GGUF_U8,  GGUF_I8,  GGUF_U16, GGUF_I16,
                                           GGUF_U32, GGUF_I32, GGUF_U64, GGUF_I64};

START_TEST(an_integer_is_read_whatever_its_width)
{
    struct gguf_writer w = {0};
    struct gguf *g;
    struct err err = {0};
    uint64_t wide = 0;
    uint32_t narrow = 0;

    gguf_writer_int(&w, "n", int_types[_i], 100);
    gguf_writer_u64(&w, "filler", 0);
    g = open_written(&w);
    ck_assert_int_eq(gguf_get_u64(g, "n", 1, 100, &wide, &err), 1);
    ck_assert_uint_eq(wide, 100);
    ck_assert_int_eq(gguf_get_u32(g, "n", 100, 200, &narrow, &err), 1);
    ck_assert_uint_eq(narrow, 100);
    gguf_close(g);
}
END_TEST

START_TEST(a_negative_integer_is_out_of_every_range)
{
    struct gguf_writer w = {0};
    struct gguf *g;
    struct err err = {0};
    uint64_t n = 7;

    if (int_types[_i] == GGUF_U8 || int_types[_i] == GGUF_U16 || int_types[_i] == GGUF_U32 ||
        int_types[_i] == GGUF_U64)
        return;
    gguf_writer_int(&w, "llama.block_count", int_types[_i], -1);
    gguf_writer_u64(&w, "filler", 0);
    g = open_written(&w);
    ck_assert_int_eq(gguf_get_u64(g, "llama.block_count", 0, UINT64_MAX, &n, &err), -ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.text, "'llama.block_count' is -1"));
    ck_assert_str_eq(err.param, "llama.block_count");
    ck_assert_uint_eq(n, 7);
    ck_assert_int_eq(gguf_elem_i64(gguf_find(g, "llama.block_count"), 0), -1);
    gguf_close(g);
}
END_TEST

START_TEST(an_integer_outside_its_range_is_refused_and_leaves_the_default)
{
    struct gguf_writer w = {0};
    struct gguf *g;
    struct err err = {0};
    uint32_t n = 7;
    uint64_t wide = 7;

    gguf_writer_u64(&w, "a", UINT64_MAX);
    gguf_writer_u32(&w, "b", 3);
    g = open_written(&w);
    ck_assert_int_eq(gguf_get_u32(g, "a", 0, UINT32_MAX, &n, &err), -ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.text, "18446744073709551615"));
    ck_assert_int_eq(gguf_get_u32(g, "b", 4, 9, &n, &err), -ERR_FORMAT);
    ck_assert_int_eq(gguf_get_u32(g, "b", 0, 2, &n, &err), -ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.text, "from 0 to 2"));
    ck_assert_uint_eq(n, 7);
    ck_assert_int_eq(gguf_get_u64(g, "a", 0, UINT64_MAX, &wide, &err), 1);
    ck_assert_uint_eq(wide, UINT64_MAX);
    ck_assert_int_eq(gguf_elem_i64(gguf_find(g, "a"), 0), INT64_MAX);
    gguf_close(g);
}
END_TEST

START_TEST(an_absent_key_leaves_the_default_and_is_no_error)
{
    struct gguf_writer w = {0};
    struct gguf *g;
    struct err err = {0};
    uint32_t n = 7;
    float f = 7;
    bool b = true;
    struct view s = VIEW("seven");

    write_sound(&w);
    g = open_written(&w);
    ck_assert_int_eq(gguf_get_u32(g, "no", 0, 1, &n, &err), 0);
    ck_assert_int_eq(gguf_get_f32(g, "no", 0, 1, &f, &err), 0);
    ck_assert_int_eq(gguf_get_bool(g, "no", &b, &err), 0);
    ck_assert_int_eq(gguf_get_string(g, "no", &s, &err), 0);
    ck_assert(n == 7 && f == 7 && b && view_is(s, "seven"));
    gguf_close(g);
}
END_TEST

START_TEST(no_type_is_taken_for_another)
{
    struct gguf_writer w = {0};
    struct gguf *g;
    struct err err = {0};
    uint32_t n;
    float f;
    bool b;
    struct view s;

    gguf_writer_string(&w, "string", "1");
    gguf_writer_u32(&w, "int", 1);
    gguf_writer_f32(&w, "float", 1);
    gguf_writer_bool(&w, "bool", true);
    gguf_writer_array(&w, "array", GGUF_U32, (const uint32_t[]){1}, 1);
    gguf_writer_strings(&w, "strings", (const char *const[]){"1"}, 1);
    g = open_written(&w);
    for (size_t i = 0; i < gguf_n_values(g); i++) {
        struct view key = gguf_value_at(g, i)->key;
        char text[16];

        snprintf(text, sizeof text, "%.*s", (int)key.len, key.p);
        ck_assert_int_eq(gguf_get_u32(g, text, 0, 9, &n, &err),
                         view_is(key, "int") ? 1 : -ERR_FORMAT);
        ck_assert_int_eq(gguf_get_f32(g, text, 0, 9, &f, &err),
                         view_is(key, "float") ? 1 : -ERR_FORMAT);
        ck_assert_int_eq(gguf_get_bool(g, text, &b, &err), view_is(key, "bool") ? 1 : -ERR_FORMAT);
        ck_assert_int_eq(gguf_get_string(g, text, &s, &err),
                         view_is(key, "string") ? 1 : -ERR_FORMAT);
        if (!view_is(key, "string"))
            ck_assert_ptr_nonnull(strstr(err.text, text));
    }
    gguf_close(g);
}
END_TEST

START_TEST(a_float_is_finite_and_within_its_range)
{
    static const struct {
        double value;
        int result;
    } cases[] = {{1.5, 1},
                 {0, 1},
                 {2, 1},
                 {2.5, -ERR_FORMAT},
                 {-0.5, -ERR_FORMAT},
                 {NAN, -ERR_FORMAT},
                 {INFINITY, -ERR_FORMAT},
                 {1e300, -ERR_FORMAT}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct gguf_writer w = {0};
        struct gguf *g;
        struct err err = {0};
        float f = 7;

        gguf_writer_f32(&w, "f32", (float)cases[i].value);
        gguf_writer_f64(&w, "f64", cases[i].value);
        g = open_written(&w);
        ck_assert_int_eq(gguf_get_f32(g, "f32", 0, 2, &f, &err), cases[i].result);
        ck_assert_int_eq(gguf_get_f32(g, "f64", 0, 2, &f, &err), cases[i].result);
        ck_assert(f == (cases[i].result == 1 ? (float)cases[i].value : 7));
        gguf_close(g);
    }
}
END_TEST

START_TEST(elements_of_arrays_are_read_by_their_type)
{
    struct gguf_writer w = {0};
    struct gguf *g;
    const struct gguf_value *v;

    gguf_writer_array(&w, "i8", GGUF_I8, (const int8_t[]){-1, 2}, 2);
    gguf_writer_array(&w, "u16", GGUF_U16, (const uint16_t[]){65535, 3}, 2);
    gguf_writer_array(&w, "i64", GGUF_I64, (const int64_t[]){INT64_MIN, 5}, 2);
    gguf_writer_array(&w, "f32", GGUF_F32, (const float[]){-0.5f, 1e30f}, 2);
    gguf_writer_array(&w, "f64", GGUF_F64, (const double[]){1e300, 2}, 2);
    gguf_writer_array(&w, "none", GGUF_I32, NULL, 0);
    gguf_writer_views(&w, "text", (const struct view[]){VIEW("a\0b"), VIEW("")}, 2);
    g = open_written(&w);
    ck_assert_int_eq(gguf_elem_i64(gguf_find(g, "i8"), 0), -1);
    ck_assert_int_eq(gguf_elem_i64(gguf_find(g, "u16"), 0), 65535);
    ck_assert_int_eq(gguf_elem_i64(gguf_find(g, "i64"), 0), INT64_MIN);
    ck_assert(gguf_elem_f64(gguf_find(g, "f32"), 1) == (double)1e30f);
    ck_assert(gguf_elem_f64(gguf_find(g, "f64"), 0) == 1e300);
    ck_assert(gguf_elem_f64(gguf_find(g, "i8"), 1) == 2);
    v = gguf_find(g, "none");
    ck_assert(v && v->n == 0 && v->type == GGUF_ARRAY && v->elem_type == GGUF_I32);
    v = gguf_find(g, "text");
    ck_assert(v->n == 2 && v->strings[0].len == 3 && v->strings[1].len == 0);
    gguf_close(g);
}
END_TEST

START_TEST(types_have_names_and_kinds)
{
    ck_assert_str_eq(gguf_type_name(GGUF_F32), "f32");
    ck_assert_str_eq(gguf_type_name(GGUF_ARRAY), "array");
    ck_assert(gguf_is_int(GGUF_I64) && !gguf_is_int(GGUF_BOOL) && !gguf_is_int(GGUF_F32));
    ck_assert(gguf_is_float(GGUF_F64) && !gguf_is_float(GGUF_I8));
}
END_TEST

TCase *tcase_gguf_value(void);
TCase *tcase_gguf_value(void)
{
    TCase *tc = tcase_create("value");

    tcase_add_loop_test(tc, an_integer_is_read_whatever_its_width, 0, ARRAY_LEN(int_types));
    tcase_add_loop_test(tc, a_negative_integer_is_out_of_every_range, 0, ARRAY_LEN(int_types));
    tcase_add_test(tc, an_integer_outside_its_range_is_refused_and_leaves_the_default);
    tcase_add_test(tc, an_absent_key_leaves_the_default_and_is_no_error);
    tcase_add_test(tc, no_type_is_taken_for_another);
    tcase_add_test(tc, a_float_is_finite_and_within_its_range);
    tcase_add_test(tc, elements_of_arrays_are_read_by_their_type);
    tcase_add_test(tc, types_have_names_and_kinds);
    return tc;
}
