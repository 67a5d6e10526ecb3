/*
 * kept - small JSON files of the state folder: what was measured or learnt, for
 * the next start.
 *
 * Nothing here is an error: what cannot be written or read is found out again.
 *
 * Any thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes all, which it takes, to a path in dir; makes dir. */
void kept_save(const char *dir, const char *path, json_t *all);
/* NULL when there is nothing, or no JSON, or more than max bytes.  New reference. */
json_t *kept_load(const char *path, size_t max);
/* Is it of this version, and its "at" (clock_wall_s) not of the future nor older than so many seconds? */
bool kept_is_fresh(const json_t *all, int version, int64_t seconds);
