/* A folder for the files of one test; see scratch.h. */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/alloc.h"
#include "tests/unit/common/scratch.h"

static char folder[64];
static pid_t owner;

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static void remove_folder(void)
{
    if (folder[0] && getpid() == owner)
        nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *scratch_make(void)
{
    if (!folder[0] || getpid() != owner) {
        snprintf(folder, sizeof folder, "/tmp/rnbd-test-XXXXXX");
        if (!mkdtemp(folder)) {
            perror(folder);
            abort();
        }
        owner = getpid();
        atexit(remove_folder);
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
