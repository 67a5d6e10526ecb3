/* Sizes, shares and times as people write them. */
#include <check.h>
#include <stdint.h>
#include <string.h>

#include "common/units.h"

#define N(a) (int)(sizeof(a) / sizeof((a)[0]))

static const struct {
    const char *text;
    uint64_t bytes;
} good_sizes[] = {
    {"0", 0},
    {"1", 1},
    {"4096", 4096},
    {"18446744073709551615", UINT64_MAX},
    {"12B", 12},
    {"1KiB", 1024},
    {"1KB", 1000},
    {"1K", 1024},
    {"2M", 2097152},
    {"2MB", 2000000},
    {"512MiB", 536870912},
    {"1.5GiB", 1610612736},
    {"1.5G", 1610612736},
    {"0.5KiB", 512},
    {"1TB", 1000000000000},
    {"1TiB", 1099511627776},
    {"16777215TiB", 18446742974197923840ull},
    {"12gib", 12884901888},
    {"  3 MiB ", 3145728},
    {"1.00000000000000000000000001KiB", 1024},
    {"0.1KB", 100},
    {"00012", 12},
};

START_TEST(a_size_is_read)
{
    struct err err;
    uint64_t bytes = 7;

    ck_assert_msg(units_parse_size(good_sizes[_i].text, &bytes, &err) == 0, "%s", err.text);
    ck_assert_uint_eq(bytes, good_sizes[_i].bytes);
    ck_assert_int_eq(units_parse_share(good_sizes[_i].text, 1, &bytes, &err), 0);
    ck_assert_uint_eq(bytes, good_sizes[_i].bytes);
}
END_TEST

static const char *const bad_sizes[] = {
    "",
    " ",
    "-1",
    "+1",
    "GiB",
    ".5GiB",
    "1.",
    "1.GiB",
    "1.5",
    "1,5GiB",
    "1e9",
    "0x10",
    "12 GiB x",
    "12Gi",
    "12XB",
    "1 0",
    "80%",
    "18446744073709551616",
    "16777216TiB",
    "99999999999999999999999GiB",
    "nan",
    "inf",
    "\xFF",
    "1GiBGiB",
};

START_TEST(what_is_no_size_is_refused_by_name)
{
    struct err err;
    uint64_t bytes = 7;

    ck_assert_int_eq(units_parse_size(bad_sizes[_i], &bytes, &err), -ERR_INVALID);
    ck_assert_uint_eq(bytes, 7);
    ck_assert_ptr_nonnull(strstr(err.text, bad_sizes[_i]));
}
END_TEST

START_TEST(a_share_is_taken_of_the_whole)
{
    uint64_t bytes = 0;

    ck_assert_int_eq(units_parse_share("80%", 1000, &bytes, NULL), 0);
    ck_assert_uint_eq(bytes, 800);
    ck_assert_int_eq(units_parse_share("12.5 %", 1000, &bytes, NULL), 0);
    ck_assert_uint_eq(bytes, 125);
    ck_assert_int_eq(units_parse_share("100%", UINT64_MAX, &bytes, NULL), 0);
    ck_assert_uint_eq(bytes, UINT64_MAX);
    ck_assert_int_eq(units_parse_share("0%", 1000, &bytes, NULL), 0);
    ck_assert_uint_eq(bytes, 0);
    ck_assert_int_eq(units_parse_share("50.000000000000001%", UINT64_MAX, &bytes, NULL), 0);
    ck_assert_uint_ge(bytes, UINT64_MAX / 2);
}
END_TEST

static const char *const bad_shares[] = {
    "101%", "100.1%", "-1%", "%", "80%%", "80% x", "", "18446744073709551616%", "eighty%"};

START_TEST(a_share_that_cannot_be_is_refused)
{
    uint64_t bytes = 7;

    ck_assert_int_eq(units_parse_share(bad_shares[_i], 1000, &bytes, NULL), -ERR_INVALID);
    ck_assert_uint_eq(bytes, 7);
}
END_TEST

static const struct {
    const char *text;
    int64_t ms;
} good_times[] = {
    {"0", 0},
    {"250ms", 250},
    {"30s", 30000},
    {"15m", 900000},
    {"2h", 7200000},
    {"1d", 86400000},
    {"1.5s", 1500},
    {"500us", 1},
    {"1us", 1},
    {"0us", 0},
    {"2000us", 2},
    {"1h30m", 5400000},
    {"2h 05m", 7500000},
    {" 3m20s ", 200000},
    {"106751991d", 9223372022400000},
};

START_TEST(a_time_is_read_and_never_becomes_nothing)
{
    struct err err;
    int64_t ms = -7;

    ck_assert_msg(units_parse_time_ms(good_times[_i].text, &ms, &err) == 0, "%s", err.text);
    ck_assert_int_eq(ms, good_times[_i].ms);
}
END_TEST

static const char *const bad_times[] = {
    "",
    " ",
    "5",
    "00",
    "-5s",
    "5S",
    "5M",
    "ms",
    "5 s x",
    "1,5s",
    "1.s",
    "5min",
    "5sec",
    "5sm",
    "5%",
    "5s5",
    "106751992d",
    "18446744073709551616s",
    "106751991d 106751991d",
};

START_TEST(what_is_no_time_is_refused)
{
    struct err err;
    int64_t ms = -7;

    ck_assert_int_eq(units_parse_time_ms(bad_times[_i], &ms, &err), -ERR_INVALID);
    ck_assert_int_eq(ms, -7);
    ck_assert_ptr_nonnull(strstr(err.text, bad_times[_i]));
}
END_TEST

static const struct {
    uint64_t bytes;
    const char *text;
} shown_sizes[] = {
    {0, "0 B"},
    {312, "312 B"},
    {1023, "1023 B"},
    {1024, "1.00 KiB"},
    {1610612736, "1.50 GiB"},
    {100663296, "96.0 MiB"},
    {327155712, "312 MiB"},
    {10485759, "10.0 MiB"},
    {1073741823, "1.00 GiB"},
    {1047527424, "999 MiB"},
    {UINT64_MAX, "16.0 EiB"},
};

START_TEST(a_size_is_shown_in_three_digits)
{
    char buf[24];

    ck_assert_str_eq(units_format_size(shown_sizes[_i].bytes, buf, sizeof buf),
                     shown_sizes[_i].text);
}
END_TEST

START_TEST(a_size_that_was_shown_can_be_read)
{
    char buf[24];
    uint64_t back;

    for (uint64_t n = 1; n; n <<= 1) {
        units_format_size(n, buf, sizeof buf);
        if (strchr(buf, 'P') || strchr(buf, 'E'))
            break;
        ck_assert_int_eq(units_parse_size(buf, &back, NULL), 0);
        ck_assert_uint_eq(back, n);
    }
}
END_TEST

START_TEST(a_size_that_was_rounded_up_is_enough)
{
    char buf[24];
    uint64_t back;

    for (uint64_t n = 1; n < (uint64_t)1 << 50; n += n / 97 + 1) {
        units_format_size_up(n, buf, sizeof buf);
        ck_assert_int_eq(units_parse_size(buf, &back, NULL), 0);
        ck_assert_msg(back >= n && back - n <= n / 99, "%s", buf);
    }
    ck_assert_str_eq(units_format_size_up(1073741824, buf, sizeof buf), "1.00 GiB");
    ck_assert_str_eq(units_format_size_up(1073741825, buf, sizeof buf), "1.01 GiB");
}
END_TEST

static const struct {
    int64_t ms;
    const char *text;
} shown_times[] = {
    {0, "0ms"},         {250, "250ms"},      {999, "999ms"},    {1200, "1.2s"},
    {59999, "59.9s"},   {60000, "1m00s"},    {200000, "3m20s"}, {3599999, "59m59s"},
    {7500000, "2h05m"}, {90000000, "1d01h"}, {-1200, "-1.2s"},  {INT64_MIN, "-106751991167d07h"},
};

START_TEST(a_time_is_shown)
{
    char buf[24];

    ck_assert_str_eq(units_format_time_ms(shown_times[_i].ms, buf, sizeof buf),
                     shown_times[_i].text);
}
END_TEST

START_TEST(a_small_buffer_is_not_overrun)
{
    char buf[4] = "zzz";

    units_format_size(1610612736, buf, 3);
    ck_assert_str_eq(buf, "1.");
    ck_assert_int_eq(buf[3], 0);
    units_format_time_ms(7500000, buf, 3);
    ck_assert_str_eq(buf, "2h");
}
END_TEST

TCase *tcase_common_units(void);
TCase *tcase_common_units(void)
{
    TCase *tc = tcase_create("units");

    tcase_add_loop_test(tc, a_size_is_read, 0, N(good_sizes));
    tcase_add_loop_test(tc, what_is_no_size_is_refused_by_name, 0, N(bad_sizes));
    tcase_add_test(tc, a_share_is_taken_of_the_whole);
    tcase_add_loop_test(tc, a_share_that_cannot_be_is_refused, 0, N(bad_shares));
    tcase_add_loop_test(tc, a_time_is_read_and_never_becomes_nothing, 0, N(good_times));
    tcase_add_loop_test(tc, what_is_no_time_is_refused, 0, N(bad_times));
    tcase_add_loop_test(tc, a_size_is_shown_in_three_digits, 0, N(shown_sizes));
    tcase_add_test(tc, a_size_that_was_shown_can_be_read);
    tcase_add_test(tc, a_size_that_was_rounded_up_is_enough);
    tcase_add_loop_test(tc, a_time_is_shown, 0, N(shown_times));
    tcase_add_test(tc, a_small_buffer_is_not_overrun);
    return tc;
}
