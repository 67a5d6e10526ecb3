/* Whole small files and atomic replacement; see file.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/alloc.h"
#include "common/file.h"

#define CHUNK ((size_t)16 << 10)

static int cannot(const char *verb, const char *path, int errnum, struct err *err)
{
    enum err_kind kind = errnum == ENOENT || errnum == ENOTDIR ? ERR_NOT_FOUND : ERR_IO;

    return err_set_errno(err, kind, errnum, "cannot %s '%s'", verb, path);
}

static int read_to_end(int fd, const char *path, size_t max, struct str *text, struct err *err)
{
    char *chunk = xmalloc(CHUNK);
    ssize_t n;
    int r = 0;

    while ((n = read(fd, chunk, CHUNK)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            r = cannot("read", path, errno, err);
            break;
        }
        if ((size_t)n > max - text->len) {
            r = err_set(err, ERR_TOO_LARGE, "'%s' is larger than the %zu bytes that are read of it",
                        path, max);
            break;
        }
        str_add(text, chunk, (size_t)n);
    }
    free(chunk);
    return r;
}

int file_read_all(const char *path, size_t max, struct str *ret_text, struct err *err)
{
    struct str text = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    int r;

    if (fd < 0)
        return cannot("open", path, errno, err);
    r = read_to_end(fd, path, max, &text, err);
    close(fd);
    if (r < 0)
        str_clear(&text);
    else
        *ret_text = text;
    return r;
}

static int write_all(int fd, const char *p, size_t n)
{
    while (n) {
        ssize_t done = write(fd, p, n);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return errno;
        p += done;
        n -= (size_t)done;
    }
    return 0;
}

/* The name itself is durable only once its folder is; file systems that cannot sync one are let be. */
static void sync_folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? xstrndup(path, (size_t)(slash - path) + 1) : xstrdup(".");
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    free(folder);
}

int file_replace(const char *path, const void *bytes, size_t n, unsigned mode, struct err *err)
{
    char *beside = xasprintf("%s.XXXXXX", path);
    int fd = mkostemp(beside, O_CLOEXEC);
    int r = 0, errnum;

    if (fd < 0) {
        r = cannot("create a file beside", path, errno, err);
        goto out;
    }
    errnum = write_all(fd, bytes, n);
    if (!errnum && (fchmod(fd, mode) < 0 || fsync(fd) < 0))
        errnum = errno;
    if (close(fd) < 0 && !errnum)
        errnum = errno;
    if (!errnum && rename(beside, path) < 0)
        errnum = errno;
    if (errnum) {
        unlink(beside);
        r = cannot("write", path, errnum, err);
        goto out;
    }
    sync_folder_of(path);
out:
    free(beside);
    return r;
}

int file_pread_all(int fd, void *buf, size_t n, off_t offset, const char *name, struct err *err)
{
    char *p = buf;

    if (offset < 0 || n > (uint64_t)INT64_MAX - (uint64_t)offset)
        return err_set(err, ERR_IO, "no file reaches as far as what is asked of '%s'", name);
    while (n) {
        ssize_t done = pread(fd, p, n, offset);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return err_set_errno(err, ERR_IO, errno, "cannot read '%s' at byte %lld", name,
                                 (long long)offset);
        if (done == 0)
            return err_set(err, ERR_IO, "'%s' ends at byte %lld, %zu bytes too early", name,
                           (long long)offset, n);
        p += done;
        n -= (size_t)done;
        offset += done;
    }
    return 0;
}

static int make_dir(const char *path, unsigned mode, struct err *err)
{
    struct stat st;
    int errnum;

    if (mkdir(path, mode) == 0)
        return 0;
    errnum = errno;
    /* A read-only parent answers EROFS or EACCES even for a folder that exists. */
    if (stat(path, &st) == 0) {
        if (S_ISDIR(st.st_mode))
            return 0;
        errnum = ENOTDIR;
    }
    return err_set_errno(err, ERR_IO, errnum, "cannot make the folder '%s'", path);
}

int file_make_dirs(const char *path, unsigned mode, struct err *err)
{
    char *part = xstrdup(path);
    int r = 0;

    for (char *p = part; *p && r == 0; p++)
        if (*p == '/' && p > part && p[-1] != '/') {
            *p = '\0';
            r = make_dir(part, mode, err);
            *p = '/';
        }
    if (r == 0)
        r = make_dir(part, mode, err);
    free(part);
    return r;
}

bool file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

char *file_join(const char *dir, const char *name)
{
    size_t len = strlen(dir);

    return xasprintf("%s%s%s", dir, len && dir[len - 1] != '/' ? "/" : "", name);
}
