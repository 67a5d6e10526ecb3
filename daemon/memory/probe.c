/* What the machine and the process's cgroup have.  See probe.h. */

#include "daemon/memory/probe.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/alloc.h"
#include "common/file.h"
#include "common/str.h"

#define PROC_MAX      ((size_t)4 << 20)
#define MINCORE_BYTES ((size_t)1 << 30) /* of a file at a time */

/* "MemTotal:  123 kB" → bytes; 0 when the key is not there. */
static size_t kib_field(const char *text, const char *key)
{
    const char *p = strstr(text, key);

    return p ? (size_t)strtoull(p + strlen(key), NULL, 10) << 10 : 0;
}

/* A limit file's number; "max" and what cannot be read are none. */
static size_t read_limit(const char *path)
{
    struct str text = {0};
    size_t v = SIZE_MAX;
    char *end;

    if (file_read_all(path, 256, &text, NULL) >= 0 && text.len) {
        unsigned long long n = strtoull(str_text(&text), &end, 10);

        /* v1 says "none" as the largest multiple of a page below 2^63 */
        if (end != str_text(&text) && n < (1ULL << 62))
            v = (size_t)n;
    }
    str_clear(&text);
    return v;
}

/* One mounted hierarchy that can limit memory. */
struct hierarchy {
    char root[512];  /* the cgroup that stands at the mount point */
    char point[512]; /* the mount point */
    const char *file;
    bool found;
};

/* The part of a v1 options list: is "memory" one of them? */
static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);

    for (const char *p = list; (p = strstr(p, word)); p += n)
        if ((p == list || p[-1] == ',') &&
            (p[n] == ',' || p[n] == '\0' || p[n] == '\n' || p[n] == ' '))
            return true;
    return false;
}

/* Finds the mounts of both versions in mountinfo (proc(5)). */
static void find_hierarchies(char *mountinfo, struct hierarchy *v1, struct hierarchy *v2)
{
    char *save = NULL;

    for (char *line = strtok_r(mountinfo, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char root[512], point[512], type[64], options[512];
        const char *dash = strstr(line, " - ");
        struct hierarchy *h;

        if (!dash || sscanf(line, "%*s %*s %*s %511s %511s", root, point) != 2 ||
            sscanf(dash, " - %63s %*s %511s", type, options) != 2)
            continue;
        if (strcmp(type, "cgroup2") == 0)
            h = v2;
        else if (strcmp(type, "cgroup") == 0 && has_word(options, "memory"))
            h = v1;
        else
            continue;
        snprintf(h->root, sizeof h->root, "%s", root);
        snprintf(h->point, sizeof h->point, "%s", point);
        h->found = true;
    }
}

/* A cgroup's path as seen below the mount point; "" for what is mounted itself. */
static const char *below_mount(const struct hierarchy *h, const char *path)
{
    /* Inside a container the path may be the host's; what is mounted is then its own root. */
    if (strcmp(h->root, "/") != 0) {
        size_t n = strlen(h->root);

        path =
            strncmp(path, h->root, n) == 0 && (path[n] == '/' || path[n] == '\0') ? path + n : "";
    }
    return strcmp(path, "/") == 0 ? "" : path;
}

/* The least limit from the cgroup `path` up to the mount point. */
static void walk_up(const char *fs_root, const struct hierarchy *h, const char *path,
                    struct probe_machine *ret)
{
    char *rel, *slash;

    rel = xstrdup(below_mount(h, path));
    for (;;) {
        char *file = xasprintf("%s%s%s/%s", fs_root, h->point, rel, h->file);
        size_t limit = read_limit(file);

        if (limit < ret->cgroup_bytes) {
            ret->cgroup_bytes = limit;
            snprintf(ret->cgroup_path, sizeof ret->cgroup_path, "%s", file + strlen(fs_root));
        }
        free(file);
        slash = strrchr(rel, '/');
        if (!slash)
            break;
        *slash = '\0';
    }
    free(rel);
}

/* What the kernel says about the process's cgroups. */
struct groups {
    struct str mounts, text;
    struct hierarchy v1, v2;
};

static void groups_clear(struct groups *g)
{
    str_clear(&g->mounts);
    str_clear(&g->text);
}

static void groups_read(const char *root, struct groups *ret)
{
    char *path = xasprintf("%s/proc/self/mountinfo", root);

    *ret = (struct groups){.v1.file = "memory.limit_in_bytes", .v2.file = "memory.max"};
    if (file_read_all(path, PROC_MAX, &ret->mounts, NULL) >= 0 && ret->mounts.len)
        find_hierarchies(ret->mounts.p, &ret->v1, &ret->v2);
    free(path);
    path = xasprintf("%s/proc/self/cgroup", root);
    if (file_read_all(path, PROC_MAX, &ret->text, NULL) < 0)
        str_clear(&ret->text);
    free(path);
}

/*
 * The next hierarchy of cgroup(7)'s list that can limit memory, and the group in
 * it.  save: as strtok_r's.
 */
static const struct hierarchy *groups_next(struct groups *g, char **save, char **ret_group)
{
    char *line = g->text.len ? strtok_r(*save ? NULL : g->text.p, "\n", save) : NULL;

    for (; line; line = strtok_r(NULL, "\n", save)) {
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;

        if (!group)
            continue;
        *group++ = '\0';
        controllers++;
        *ret_group = group;
        if (!*controllers && g->v2.found)
            return &g->v2;
        if (has_word(controllers, "memory") && g->v1.found)
            return &g->v1;
    }
    return NULL;
}

static void probe_cgroups(const char *root, struct probe_machine *ret)
{
    struct groups g;
    const struct hierarchy *h;
    char *save = NULL, *group;

    groups_read(root, &g);
    while ((h = groups_next(&g, &save, &group)))
        walk_up(root, h, group, ret);
    groups_clear(&g);
}

bool probe_own_cgroup2(const char *root, char *ret_dir, size_t cap)
{
    struct groups g;
    const struct hierarchy *h;
    char *save = NULL, *group;
    bool found = false;

    groups_read(root, &g);
    while (!found && (h = groups_next(&g, &save, &group)))
        found = h == &g.v2 &&
                (size_t)snprintf(ret_dir, cap, "%s%s", h->point, below_mount(h, group)) < cap;
    groups_clear(&g);
    return found;
}

int probe_machine(const char *root, struct probe_machine *ret, struct err *err)
{
    struct probe_machine m = {.cgroup_bytes = SIZE_MAX};
    struct str text = {0};
    char *path = xasprintf("%s/proc/meminfo", root);
    int r = file_read_all(path, PROC_MAX, &text, err);

    if (r < 0)
        goto out;
    m.ram_bytes = kib_field(str_text(&text), "MemTotal:");
    if (!m.ram_bytes) {
        r = err_set(err, ERR_IO, "%s does not say how much memory there is (no MemTotal)", path);
        goto out;
    }
    probe_cgroups(root, &m);
    m.usable_bytes = MIN(m.ram_bytes, m.cgroup_bytes);
    *ret = m;
    r = 0;
out:
    free(path);
    str_clear(&text);
    return r;
}

/* cachestat(2), from Linux 6.5 on. */
static bool ask_cachestat(int fd, size_t *ret_bytes)
{
#ifdef SYS_cachestat
    const long number = SYS_cachestat;
#else
    const long number = 451; /* the same on all architectures */
#endif
    struct {
        uint64_t from, bytes; /* 0: to the end */
    } range = {0, 0};
    struct {
        uint64_t cached, dirty, writeback, evicted, recently_evicted; /* pages */
    } got = {0};

    if (syscall(number, fd, &range, &got, 0) != 0)
        return false;
    *ret_bytes = (size_t)got.cached * (size_t)sysconf(_SC_PAGESIZE);
    return true;
}

/* mincore(2): a map of the file, of which nothing is touched. */
static size_t ask_mincore(int fd, size_t file_bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = 0;
    unsigned char *there = xcalloc(MINCORE_BYTES / page, 1);

    for (size_t at = 0; at < file_bytes; at += MINCORE_BYTES) {
        size_t n = MIN(MINCORE_BYTES, file_bytes - at);
        void *map = mmap(NULL, n, PROT_READ, MAP_SHARED, fd, (off_t)at);

        if (map == MAP_FAILED)
            break;
        if (mincore(map, n, there) == 0)
            for (size_t i = 0; i < (n + page - 1) / page; i++)
                pages += there[i] & 1;
        munmap(map, n);
    }
    free(there);
    return pages * page;
}

size_t probe_page_cache(const char *path, bool by_map)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    size_t bytes = 0;
    struct stat st;

    if (fd < 0)
        return 0;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (by_map || !ask_cachestat(fd, &bytes)))
        bytes = ask_mincore(fd, (size_t)st.st_size);
    close(fd);
    return bytes;
}

int probe_self(struct probe_self *ret, struct err *err)
{
    struct str text = {0};
    int r = file_read_all("/proc/self/smaps_rollup", 65536, &text, err);

    if (r >= 0) {
        *ret = (struct probe_self){.rss_bytes = kib_field(str_text(&text), "Rss:"),
                                   .anon_bytes = kib_field(str_text(&text), "Anonymous:")};
        r = 0;
    }
    str_clear(&text);
    return r;
}
