/* Entries in order of insertion, and an open-addressing index into them; see map.h. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/hash.h"
#include "common/map.h"

struct entry {
    const char *key; /* NULL once removed: the entry then only keeps a probe chain whole */
    size_t len;
    uint64_t hash;
    void *value;
};

struct map {
    struct entry *entries; /* [n_entries], at most half of the slots */
    size_t n_entries;
    size_t n_live;
    size_t *slots;  /* [n_slots]: index into entries + 1, or 0 */
    size_t n_slots; /* a power of two, or 0 before the first key */
    uint64_t seed;
    bool borrows; /* keys are not its own */
};

#define MIN_SLOTS 16

struct map *map_create(void)
{
    struct map *m = XNEW(struct map);

    /* The address differs from run to run, so prepared collisions do not carry over. */
    m->seed = (uint64_t)(uintptr_t)m;
    return m;
}

struct map *map_create_borrowing(void)
{
    struct map *m = map_create();

    m->borrows = true;
    return m;
}

static void drop_key(const struct map *m, const char *key)
{
    if (!m->borrows)
        free((void *)(uintptr_t)key);
}

void map_destroy(struct map *m, void (*free_value)(void *))
{
    if (!m)
        return;
    for (size_t i = 0; i < m->n_entries; i++) {
        if (m->entries[i].key && free_value)
            free_value(m->entries[i].value);
        drop_key(m, m->entries[i].key);
    }
    free(m->entries);
    free(m->slots);
    free(m);
}

/* The entry of this key, or NULL. */
static struct entry *find(const struct map *m, const void *key, size_t len, uint64_t hash)
{
    size_t mask = m->n_slots - 1;

    if (m->n_slots == 0)
        return NULL;
    for (size_t at = hash & mask; m->slots[at]; at = (at + 1) & mask) {
        struct entry *e = &m->entries[m->slots[at] - 1];

        if (e->key && e->hash == hash && e->len == len && (!len || memcmp(e->key, key, len) == 0))
            return e;
    }
    return NULL;
}

static void link_entry(struct map *m, size_t index)
{
    size_t mask = m->n_slots - 1;
    size_t at = m->entries[index].hash & mask;

    while (m->slots[at])
        at = (at + 1) & mask;
    m->slots[at] = index + 1;
}

/* Drops removed entries; doubles the index when the living alone would fill it past a quarter. */
static void rebuild(struct map *m)
{
    size_t n = 0;

    for (size_t i = 0; i < m->n_entries; i++)
        if (m->entries[i].key)
            m->entries[n++] = m->entries[i];
    m->n_entries = n;
    if (m->n_slots == 0)
        m->n_slots = MIN_SLOTS;
    else if (n >= m->n_slots / 4)
        m->n_slots *= 2;
    free(m->slots);
    m->slots = XNEW_ARRAY(size_t, m->n_slots);
    m->entries = xreallocarray(m->entries, m->n_slots / 2, sizeof *m->entries);
    for (size_t i = 0; i < n; i++)
        link_entry(m, i);
}

static const char *own_key(const void *key, size_t len)
{
    char *copy = xmalloc(len + 1);

    if (len)
        memcpy(copy, key, len);
    copy[len] = '\0';
    return copy;
}

static void append(struct map *m, const void *key, size_t len, uint64_t hash, void *value)
{
    /* An empty key may have no address, and no address is that of a removed one. */
    const char *kept = !m->borrows ? own_key(key, len) : len ? key : "";

    if (m->n_entries >= m->n_slots / 2)
        rebuild(m);
    m->entries[m->n_entries] =
        (struct entry){.key = kept, .len = len, .hash = hash, .value = value};
    link_entry(m, m->n_entries++);
    m->n_live++;
}

bool map_add(struct map *m, const void *key, size_t len, void *value)
{
    uint64_t hash = hash_bytes_seed(key, len, m->seed);

    if (find(m, key, len, hash))
        return false;
    append(m, key, len, hash, value);
    return true;
}

void *map_put(struct map *m, const void *key, size_t len, void *value)
{
    uint64_t hash = hash_bytes_seed(key, len, m->seed);
    struct entry *e = find(m, key, len, hash);
    void *old;

    if (!e) {
        append(m, key, len, hash, value);
        return NULL;
    }
    old = e->value;
    e->value = value;
    return old;
}

void *map_get(const struct map *m, const void *key, size_t len)
{
    const struct entry *e = find(m, key, len, hash_bytes_seed(key, len, m->seed));

    return e ? e->value : NULL;
}

bool map_has(const struct map *m, const void *key, size_t len)
{
    return find(m, key, len, hash_bytes_seed(key, len, m->seed)) != NULL;
}

void *map_remove(struct map *m, const void *key, size_t len)
{
    struct entry *e = find(m, key, len, hash_bytes_seed(key, len, m->seed));

    if (!e)
        return NULL;
    drop_key(m, e->key);
    e->key = NULL;
    m->n_live--;
    return e->value;
}

size_t map_bytes(const struct map *m)
{
    return sizeof *m + m->n_slots * sizeof *m->slots + m->n_slots / 2 * sizeof *m->entries;
}

/*
 * n keys have fewer than 4n slots, or the least there are, and half as many entries; while entries
 * move the old ones, half of that half, are there too.
 */
size_t map_bytes_for(size_t n)
{
    size_t slots = 4 * n + MIN_SLOTS;

    return sizeof(struct map) + slots * sizeof(size_t) +
           (slots / 2 + slots / 4) * sizeof(struct entry);
}

size_t map_count(const struct map *m)
{
    return m->n_live;
}

bool map_next(const struct map *m, size_t *i, const char **ret_key, size_t *ret_len,
              void **ret_value)
{
    while (*i < m->n_entries) {
        const struct entry *e = &m->entries[(*i)++];

        if (!e->key)
            continue;
        if (ret_key)
            *ret_key = e->key;
        if (ret_len)
            *ret_len = e->len;
        if (ret_value)
            *ret_value = e->value;
        return true;
    }
    return false;
}

bool map_adds(struct map *m, const char *key, void *value)
{
    return map_add(m, key, strlen(key), value);
}

void *map_gets(const struct map *m, const char *key)
{
    return map_get(m, key, strlen(key));
}

void *map_removes(struct map *m, const char *key)
{
    return map_remove(m, key, strlen(key));
}
