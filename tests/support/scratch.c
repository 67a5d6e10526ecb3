/* A folder for the files of one test; see scratch.h. */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/alloc.h"
#include "tests/support/scratch.h"

static char folder[64];
static pid_t owner;

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

int scratch_remove(void)
{
    int r = 0;

    if (folder[0] && getpid() == owner) {
        r = nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
        folder[0] = '\0';
    }
    return r;
}

static void remove_at_exit(void)
{
    scratch_remove();
}

const char *scratch_make(void)
{
    if (!folder[0] || getpid() != owner) {
        snprintf(folder, sizeof folder, "/tmp/rnbd-test-XXXXXX");
        if (!mkdtemp(folder)) {
            perror(folder);
            abort();
        }
        if (getpid() != owner)
            atexit(remove_at_exit);
        owner = getpid();
    }
    return folder;
}

char *scratch_path(const char *name)
{
    return xasprintf("%s/%s", scratch_make(), name);
}

char *scratch_file(const char *name, const void *bytes, unsigned long n)
{
    char *path = scratch_path(name);
    FILE *f = fopen(path, "w");

    if (!f || (n && fwrite(bytes, n, 1, f) != 1) || fclose(f) != 0) {
        perror(path);
        abort();
    }
    return path;
}
