/* UTF-8, see utf8.h. */
#include "common/utf8.h"

/* Length that a lead byte promises, 0 for a byte that leads nothing. */
static size_t lead_length(unsigned char c)
{
    if (c < 0x80)
        return 1;
    if (c >= 0xC2 && c <= 0xDF)
        return 2;
    if (c >= 0xE0 && c <= 0xEF)
        return 3;
    return c >= 0xF0 && c <= 0xF4 ? 4 : 0;
}

/* The second byte has a narrower range after E0, ED, F0 and F4 (RFC 3629, section 4). */
static bool second_ok(unsigned char lead, unsigned char c)
{
    unsigned lo = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    unsigned hi = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;

    return c >= lo && c <= hi;
}

size_t utf8_decode(const char *p, size_t n, unsigned *ret_cp)
{
    const unsigned char *s = (const unsigned char *)p;
    size_t len = n ? lead_length(s[0]) : 0;
    unsigned cp;

    *ret_cp = UTF8_REPLACEMENT;
    if (len == 0 || len > n)
        return 0;
    if (len == 1) {
        *ret_cp = s[0];
        return 1;
    }
    if (!second_ok(s[0], s[1]))
        return 0;
    cp = s[0] & (0xFFu >> (len + 1));
    for (size_t i = 1; i < len; i++) {
        if ((s[i] & 0xC0) != 0x80)
            return 0;
        cp = cp << 6 | (s[i] & 0x3Fu);
    }
    *ret_cp = cp;
    return len;
}

size_t utf8_encode(unsigned cp, char out[4])
{
    if (cp > 0x10FFFF || (cp >= 0xD800 && cp <= 0xDFFF))
        cp = UTF8_REPLACEMENT;
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        out[0] = (char)(0xC0 | cp >> 6);
        out[1] = (char)(0x80 | (cp & 0x3F));
        return 2;
    }
    if (cp < 0x10000) {
        out[0] = (char)(0xE0 | cp >> 12);
        out[1] = (char)(0x80 | (cp >> 6 & 0x3F));
        out[2] = (char)(0x80 | (cp & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | cp >> 18);
    out[1] = (char)(0x80 | (cp >> 12 & 0x3F));
    out[2] = (char)(0x80 | (cp >> 6 & 0x3F));
    out[3] = (char)(0x80 | (cp & 0x3F));
    return 4;
}

bool utf8_valid(const char *p, size_t n)
{
    unsigned cp;

    for (size_t i = 0, len; i < n; i += len)
        if ((len = utf8_decode(p + i, n - i, &cp)) == 0)
            return false;
    return true;
}

size_t utf8_incomplete_tail(const char *p, size_t n)
{
    const unsigned char *s = (const unsigned char *)p;

    for (size_t back = 1; back <= 3 && back <= n; back++) {
        unsigned char c = s[n - back];

        if ((c & 0xC0) == 0x80)
            continue;
        if (lead_length(c) <= back)
            return 0;
        return back >= 2 && !second_ok(c, s[n - back + 1]) ? 0 : back;
    }
    return 0;
}

size_t utf8_length(const char *p, size_t n)
{
    size_t count = 0;
    unsigned cp;

    for (size_t i = 0; i < n; count++) {
        size_t len = utf8_decode(p + i, n - i, &cp);

        i += len ? len : 1;
    }
    return count;
}
