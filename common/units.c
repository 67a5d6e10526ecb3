/* Sizes, shares and times as people write them; see units.h. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/alloc.h"
#include "common/units.h"

struct unit {
    const char *name;
    uint64_t worth;
};

#define K10 1000ull
#define K2  1024ull

static const struct unit sizes[] = {
    {"B", 1},
    {"KiB", K2},
    {"MiB", K2 *K2},
    {"GiB", K2 *K2 *K2},
    {"TiB", K2 *K2 *K2 *K2},
    {"KB", K10},
    {"MB", K10 *K10},
    {"GB", K10 *K10 *K10},
    {"TB", K10 *K10 *K10 *K10},
    {"K", K2},
    {"M", K2 *K2},
    {"G", K2 *K2 *K2},
    {"T", K2 *K2 *K2 *K2},
};

/* In microseconds; case counts, so that "M" is never taken for a minute. */
static const struct unit times[] = {
    {"us", 1},
    {"ms", 1000},
    {"s", 1000000},
    {"m", 60ull * 1000000},
    {"h", 3600ull * 1000000},
    {"d", 86400ull * 1000000},
};

/* A decimal number as whole + part / scale: exact, where a double is not past 2^53. */
struct number {
    uint64_t whole;
    uint64_t part;
    uint64_t scale;
};

static const char *skip_blanks(const char *p)
{
    while (*p == ' ' || *p == '\t')
        p++;
    return p;
}

/* Returns what follows the number, or NULL when there is none or it passes 64 bits. */
static const char *read_number(const char *p, struct number *ret_number)
{
    struct number n = {.scale = 1};
    const char *start = p;

    for (; isdigit((unsigned char)*p); p++)
        if (__builtin_mul_overflow(n.whole, 10, &n.whole) ||
            __builtin_add_overflow(n.whole, (uint64_t)(*p - '0'), &n.whole))
            return NULL;
    if (p == start)
        return NULL;
    if (*p == '.') {
        if (!isdigit((unsigned char)*++p))
            return NULL;
        for (; isdigit((unsigned char)*p); p++)
            if (n.scale < 1000000000000000ull) {
                n.part = n.part * 10 + (uint64_t)(*p - '0');
                n.scale *= 10;
            }
    }
    *ret_number = n;
    return p;
}

/* Rounds down, or up; false when the product passes 64 bits. */
static bool scale_number(const struct number *n, uint64_t worth, bool up, uint64_t *ret_value)
{
    unsigned __int128 part = (unsigned __int128)n->part * worth;
    unsigned __int128 sum = (unsigned __int128)n->whole * worth + part / n->scale;

    if (up && part % n->scale)
        sum++;
    if (sum > UINT64_MAX)
        return false;
    *ret_value = (uint64_t)sum;
    return true;
}

static int bad_size(const char *text, const char *forms, struct err *err)
{
    return err_set(err, ERR_INVALID, "'%.40s' is not a size; write %s", text, forms);
}

static int parse_size(const char *text, const char *forms, uint64_t *ret_bytes, struct err *err)
{
    struct number n;
    const char *p = read_number(skip_blanks(text), &n);
    uint64_t worth = 0;
    size_t len;

    if (!p)
        return bad_size(text, forms, err);
    p = skip_blanks(p);
    len = strlen(p);
    while (len && (p[len - 1] == ' ' || p[len - 1] == '\t'))
        len--;
    if (len == 0) {
        if (n.scale != 1)
            return err_set(err, ERR_INVALID, "'%.40s' has a fraction but no unit; write 1.5GiB",
                           text);
        worth = 1;
    }
    for (size_t i = 0; i < ARRAY_LEN(sizes) && !worth; i++)
        if (strlen(sizes[i].name) == len && strncasecmp(p, sizes[i].name, len) == 0)
            worth = sizes[i].worth;
    if (!worth)
        return bad_size(text, forms, err);
    if (!scale_number(&n, worth, false, ret_bytes))
        return err_set(err, ERR_INVALID, "'%.40s' is more than 64 bits can count", text);
    return 0;
}

int units_parse_size(const char *text, uint64_t *ret_bytes, struct err *err)
{
    return parse_size(text, "a number of bytes, or one like 512MiB or 1.5GiB", ret_bytes, err);
}

int units_parse_share(const char *text, uint64_t whole_bytes, uint64_t *ret_bytes, struct err *err)
{
    struct number n;
    const char *p = read_number(skip_blanks(text), &n);
    unsigned __int128 hundredths;

    if (p)
        p = skip_blanks(p);
    if (!p || *p != '%')
        return parse_size(text, "one like 512MiB or 1.5GiB, or a share like 80%", ret_bytes, err);
    if (*skip_blanks(p + 1))
        return bad_size(text, "one like 512MiB or 1.5GiB, or a share like 80%", err);
    if (n.whole > 100 || (n.whole == 100 && n.part))
        return err_set(err, ERR_INVALID, "'%.40s' is more than the whole; write at most 100%%",
                       text);
    hundredths = (unsigned __int128)whole_bytes * (n.whole * (unsigned __int128)n.scale + n.part);
    *ret_bytes = (uint64_t)(hundredths / n.scale / 100);
    return 0;
}

static int bad_time(const char *text, struct err *err)
{
    return err_set(err, ERR_INVALID, "'%.40s' is not a time; write one like 250ms, 30s, 15m or 2h",
                   text);
}

int units_parse_time_ms(const char *text, int64_t *ret_ms, struct err *err)
{
    const char *p = skip_blanks(text);
    uint64_t sum_us = 0;

    if (strcmp(p, "0") == 0) {
        *ret_ms = 0;
        return 0;
    }
    if (!*p)
        return bad_time(text, err);
    while (*p) {
        const struct unit *unit = NULL;
        struct number n;
        uint64_t us;
        size_t len;

        p = read_number(p, &n);
        if (!p)
            return bad_time(text, err);
        len = strspn(p = skip_blanks(p), "usmhd");
        for (size_t i = 0; i < ARRAY_LEN(times); i++)
            if (strlen(times[i].name) == len && strncmp(p, times[i].name, len) == 0)
                unit = &times[i];
        if (!unit)
            return bad_time(text, err);
        if (!scale_number(&n, unit->worth, true, &us) ||
            __builtin_add_overflow(sum_us, us, &sum_us) || sum_us > INT64_MAX)
            return err_set(err, ERR_INVALID, "'%.40s' is longer than can be counted", text);
        p = skip_blanks(p + len);
    }
    /* Up: a time that was asked for never becomes 0, which means "at once" or "never". */
    *ret_ms = (int64_t)(sum_us / 1000 + (sum_us % 1000 ? 1 : 0));
    return 0;
}

static char *format_size(uint64_t bytes, bool up, char *buf, unsigned cap)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    unsigned unit = 0, digits;

    /* 1023.5 would be printed as 1024 of the smaller unit. */
    while (value >= (unit ? 1023.5 : 1024.0) && unit + 1 < ARRAY_LEN(names)) {
        value /= 1024;
        unit++;
    }
    digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    if (up)
        value = ceil(value * pow(10, digits)) / pow(10, digits);
    if (unit == 0)
        snprintf(buf, cap, "%" PRIu64 " B", bytes);
    else
        snprintf(buf, cap, "%.*f %s", (int)digits, value, names[unit]);
    return buf;
}

char *units_format_size(uint64_t bytes, char *buf, unsigned cap)
{
    return format_size(bytes, false, buf, cap);
}

char *units_format_size_up(uint64_t bytes, char *buf, unsigned cap)
{
    return format_size(bytes, true, buf, cap);
}

char *units_format_time_ms(int64_t ms, char *buf, unsigned cap)
{
    uint64_t t = ms < 0 ? 0 - (uint64_t)ms : (uint64_t)ms;
    const char *sign = ms < 0 ? "-" : "";
    uint64_t s = t / 1000;

    if (t < 1000)
        snprintf(buf, cap, "%s%" PRIu64 "ms", sign, t);
    else if (s < 60)
        snprintf(buf, cap, "%s%" PRIu64 ".%" PRIu64 "s", sign, s, t % 1000 / 100);
    else if (s < 3600)
        snprintf(buf, cap, "%s%" PRIu64 "m%02" PRIu64 "s", sign, s / 60, s % 60);
    else if (s < 86400)
        snprintf(buf, cap, "%s%" PRIu64 "h%02" PRIu64 "m", sign, s / 3600, s % 3600 / 60);
    else
        snprintf(buf, cap, "%s%" PRIu64 "d%02" PRIu64 "h", sign, s / 86400, s % 86400 / 3600);
    return buf;
}
