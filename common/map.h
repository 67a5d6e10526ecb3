/*
 * map - a string-keyed hash table of pointers.
 *
 * Keys are any bytes and are copied, or borrowed; values are the caller's.  Keeps the
 * order of insertion for iteration.  Hash is XXH3: a file or a peer that
 * chooses the keys gains little, and growth keeps chains short.
 *
 * One owner at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct map;

struct map *map_create(void);
/* Keys stay the caller's, where they are, for as long as the map; map_next gives them unterminated. */
struct map *map_create_borrowing(void);
/* free_value (may be NULL) is called on every value that is left. */
void map_destroy(struct map *m, void (*free_value)(void *));

/* False, and nothing changed, when the key is there already. */
bool map_add(struct map *m, const void *key, size_t len, void *value);
/* Adds or replaces; returns the value that was there, or NULL. */
void *map_put(struct map *m, const void *key, size_t len, void *value);
void *map_get(const struct map *m, const void *key, size_t len);
bool map_has(const struct map *m, const void *key, size_t len);
void *map_remove(struct map *m, const void *key, size_t len);
size_t map_count(const struct map *m);

/* What one that borrows its keys takes; at most, while it grows to so many. */
size_t map_bytes(const struct map *m);
size_t map_bytes_for(size_t n);

/* In order of insertion: for (size_t i = 0; map_next(m, &i, &k, &len, &v);) */
bool map_next(const struct map *m, size_t *i, const char **ret_key, size_t *ret_len,
              void **ret_value);

/* For terminated keys. */
bool map_adds(struct map *m, const char *key, void *value);
void *map_gets(const struct map *m, const char *key);
void *map_removes(struct map *m, const char *key);
