/*
 * sha256 - the digest by which model files are published (FIPS 180-4).
 *
 *     struct sha256 s;
 *     sha256_init(&s);
 *     sha256_add(&s, bytes, n);
 *     sha256_hex(&s, text);
 *
 * Pure; nothing allocates or fails.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SHA256_HEX_LEN 64

struct sha256 {
    uint32_t state[8];
    uint64_t n; /* bytes so far */
    unsigned char block[64];
};

void sha256_init(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *bytes, size_t n);
/* Ends the digest: 64 digits, lower case. */
void sha256_hex(struct sha256 *s, char ret_text[SHA256_HEX_LEN + 1]);
