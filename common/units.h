/*
 * units - sizes, shares and times as people write them.
 *
 * Sizes: KiB MiB GiB TiB are powers of 1024, KB MB GB TB of 1000, K M G T
 * alone mean the powers of 1024, a bare number is bytes, a fraction is
 * allowed ("1.5GiB"), "80%" is a share.  Times: us ms s m h d ("250ms 30s 15m
 * 2h"); a bare number is refused, but for 0.
 *
 * Any thread.
 */
#pragma once

#include <stdint.h>

#include "common/err.h"

/* "512MiB" → bytes.  A share is refused here. */
int units_parse_size(const char *text, uint64_t *ret_bytes, struct err *err);

/* As units_parse_size, or "80%" of whole_bytes. */
int units_parse_share(const char *text, uint64_t whole_bytes, uint64_t *ret_bytes, struct err *err);

int units_parse_time_ms(const char *text, int64_t *ret_ms, struct err *err);

/* "1.50 GiB", "96.0 MiB", "312 B" into buf (at least 24 bytes); returns buf. */
char *units_format_size(uint64_t bytes, char *buf, unsigned cap);
/* As units_format_size, and never less than bytes: for what somebody is to give. */
char *units_format_size_up(uint64_t bytes, char *buf, unsigned cap);
/* "250ms", "1.2s", "3m20s", "2h05m" */
char *units_format_time_ms(int64_t ms, char *buf, unsigned cap);
