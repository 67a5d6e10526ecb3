/*
 * probe - what this machine has: RAM, the limits of the process's cgroup (v1
 * and v2, up the tree), and what this process holds.
 *
 * Reads /proc and /sys; roots can be replaced for tests.  Any thread: probe_machine
 * takes a tenth of a millisecond, of a few small files that are no disk's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

struct probe_machine {
    size_t ram_bytes;      /* physical */
    size_t cgroup_bytes;   /* the least limit up the tree; SIZE_MAX when none */
    size_t usable_bytes;   /* the smaller of the two */
    char cgroup_path[256]; /* where that limit stands; "" when none */
};

/* root: "" for the real one; a directory holding proc/ and sys/ for tests. */
int probe_machine(const char *root, struct probe_machine *ret, struct err *err);

/* The folder of this process's own cgroup of version 2, without root before it.  False when there is none. */
bool probe_own_cgroup2(const char *root, char *ret_dir, size_t cap);

/*
 * Bytes of a file that are in the page cache, whoever read them; 0 where the
 * kernel does not say.  by_map: as kernels before 6.5 are asked.  Not in LOOP.
 */
size_t probe_page_cache(const char *path, bool by_map);

struct probe_self {
    size_t rss_bytes;  /* Rss of smaps_rollup */
    size_t anon_bytes; /* Anonymous */
};
int probe_self(struct probe_self *ret, struct err *err);
