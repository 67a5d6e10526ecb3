/* Sockets and credentials that the service manager passed; see service.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "common/alloc.h"
#include "common/file.h"
#include "daemon/service/service.h"

/* A name that is none of ours may still be recognised by what the socket is. */
static int *slot_for(struct service_sockets *s, int fd, const char *name)
{
    if (strcmp(name, "control") == 0)
        return &s->control;
    if (strcmp(name, "http") == 0)
        return &s->http;
    return sd_is_socket_unix(fd, SOCK_STREAM, 1, NULL, 0) > 0 ? &s->control : &s->http;
}

int service_inherit(struct service_sockets *ret, struct err *err)
{
    char **names = NULL;
    int n = sd_listen_fds_with_names(1, &names);
    int r = 0;

    ret->http = ret->control = -1;
    if (n < 0)
        return err_set_errno(err, ERR_INVALID, -n,
                             "the sockets that the service manager passed are unusable");
    for (int i = 0; i < n; i++) {
        int fd = SD_LISTEN_FDS_START + i;
        int *slot = slot_for(ret, fd, names ? names[i] : "");

        if (sd_is_socket(fd, AF_UNSPEC, SOCK_STREAM, 1) <= 0 || *slot >= 0) {
            if (r == 0)
                r = err_set(err, ERR_INVALID,
                            "socket '%s' from the service manager is not a listening stream socket "
                            "that is needed",
                            names ? names[i] : "unnamed");
            close(fd);
            continue;
        }
        *slot = fd;
    }
    for (int i = 0; names && i < n; i++)
        free(names[i]);
    free(names);
    return r;
}

char *service_credential(const char *name)
{
    const char *dir =
        getenv("CREDENTIALS_DIRECTORY"); /* NOLINT(concurrency-mt-unsafe): never set */
    char *path;

    if (!dir || !*dir)
        return NULL;
    path = file_join(dir, name);
    /* One that is there and cannot be read must not pass for none: whoever opens it says why. */
    if (access(path, F_OK) == 0 || errno != ENOENT)
        return path;
    free(path);
    return NULL;
}
