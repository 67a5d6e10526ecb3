/*
 * sock - Unix stream sockets: listen, connect, who is at the other end.
 */
#pragma once

#include <sys/types.h>

#include "common/err.h"

struct sock_peer {
    pid_t pid;
    uid_t uid;
    gid_t gid;
};

/*
 * Listens on path with the given mode.  A socket file that nobody listens on
 * is removed first; one that is in use, or a file that is no socket, is an
 * error.  Non-blocking, close-on-exec.
 */
int sock_listen_unix(const char *path, unsigned mode, int *ret_fd, struct err *err);

/* Connects, blocking, close-on-exec. */
int sock_connect_unix(const char *path, int *ret_fd, struct err *err);

int sock_peer_of(int fd, struct sock_peer *ret_peer, struct err *err);
