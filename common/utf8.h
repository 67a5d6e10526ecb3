/*
 * utf8 - decode, encode and check UTF-8 (RFC 3629: no surrogates, no overlong
 * forms, at most U+10FFFF).
 *
 * Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define UTF8_REPLACEMENT 0xFFFDu

/*
 * Reads one code point from n > 0 bytes.  Returns the bytes used (1–4), or 0
 * when the bytes there are not valid UTF-8 (then *ret_cp is U+FFFD).
 */
size_t utf8_decode(const char *p, size_t n, unsigned *ret_cp);

/* Writes 1–4 bytes; a code point that has no form is written as U+FFFD. */
size_t utf8_encode(unsigned cp, char out[4]);

bool utf8_valid(const char *p, size_t n);

/*
 * How many bytes at the end are the beginning of a sequence that more bytes
 * could complete (0–3): what a stream has to hold back.
 */
size_t utf8_incomplete_tail(const char *p, size_t n);

/* Code points in n bytes; a wrong byte counts as one. */
size_t utf8_length(const char *p, size_t n);
