/* Unix stream sockets; see sock.h. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/sock.h"

static int address_of(const char *path, struct sockaddr_un *ret_addr, struct err *err)
{
    size_t len = strlen(path);

    if (len == 0 || len >= sizeof ret_addr->sun_path)
        return err_set(err, ERR_INVALID, "the socket path '%.120s' must have 1 to %zu bytes", path,
                       sizeof ret_addr->sun_path - 1);
    *ret_addr = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(ret_addr->sun_path, path, len + 1);
    return 0;
}

/* Returns 0 or an errno value; a signal does not end it. */
static int connect_to(int fd, const struct sockaddr_un *addr)
{
    while (connect(fd, (const struct sockaddr *)addr, sizeof *addr) < 0)
        if (errno != EINTR)
            return errno;
    return 0;
}

/* Makes path free to bind, or says why it is not. */
static int clear_stale(const char *path, const struct sockaddr_un *addr, struct err *err)
{
    struct stat st;
    int fd, errnum;

    if (lstat(path, &st) < 0)
        return errno == ENOENT
                   ? 0
                   : err_set_errno(err, ERR_IO, errno, "cannot look at the socket '%s'", path);
    if (!S_ISSOCK(st.st_mode))
        return err_set(err, ERR_CONFLICT, "'%s' is no socket; choose another path or remove it",
                       path);
    /* Non-blocking: a listener whose backlog is full answers EAGAIN, and is in use. */
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_set_errno(err, ERR_IO, errno, "cannot make a socket");
    errnum = connect_to(fd, addr);
    close(fd);
    if (errnum != ECONNREFUSED && errnum != ENOENT)
        return err_set(err, ERR_CONFLICT, "another process listens on '%s' already; stop it first",
                       path);
    if (unlink(path) < 0 && errno != ENOENT)
        return err_set_errno(err, ERR_IO, errno, "cannot remove the old socket '%s'", path);
    return 0;
}

int sock_listen_unix(const char *path, unsigned mode, int *ret_fd, struct err *err)
{
    struct sockaddr_un addr;
    int fd, r, bound = 0;

    r = address_of(path, &addr, err);
    if (r < 0)
        return r;
    r = clear_stale(path, &addr, err);
    if (r < 0)
        return r;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_set_errno(err, ERR_IO, errno, "cannot make a socket");
    /* The mode on the descriptor bounds the one that bind gives: at no moment is the path more open. */
    if (fchmod(fd, mode) == 0 && bind(fd, (const struct sockaddr *)&addr, sizeof addr) == 0)
        bound = 1;
    if (!bound || chmod(path, mode) < 0 || listen(fd, 64) < 0) {
        r = err_set_errno(err, ERR_IO, errno, "cannot listen on '%s'", path);
        if (bound)
            unlink(path);
        close(fd);
        return r;
    }
    *ret_fd = fd;
    return 0;
}

int sock_connect_unix(const char *path, int *ret_fd, struct err *err)
{
    struct sockaddr_un addr;
    int fd, errnum, r;

    r = address_of(path, &addr, err);
    if (r < 0)
        return r;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_set_errno(err, ERR_IO, errno, "cannot make a socket");
    errnum = connect_to(fd, &addr);
    if (errnum) {
        close(fd);
        if (errnum == ENOENT || errnum == ECONNREFUSED)
            return err_set(err, ERR_NOT_FOUND,
                           "nobody listens on '%s'; start rnbd, or name its socket", path);
        if (errnum == EACCES || errnum == EPERM)
            return err_set(err, ERR_FORBIDDEN, "this user may not connect to '%s'", path);
        return err_set_errno(err, ERR_IO, errnum, "cannot connect to '%s'", path);
    }
    *ret_fd = fd;
    return 0;
}

int sock_peer_of(int fd, struct sock_peer *ret_peer, struct err *err)
{
    struct ucred cred;
    socklen_t len = sizeof cred;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
        return err_set_errno(err, ERR_IO, errno, "cannot ask who is at the other end");
    *ret_peer = (struct sock_peer){.pid = cred.pid, .uid = cred.uid, .gid = cred.gid};
    return 0;
}
