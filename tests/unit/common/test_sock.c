/* Unix sockets: listening, connecting, and what is in the way. */
#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/sock.h"
#include "tests/support/scratch.h"

START_TEST(both_ends_meet_and_know_each_other)
{
    char *path = scratch_path("s");
    struct sock_peer peer = {.pid = 0};
    struct err err;
    int listener, client, server;
    char c = 0;

    ck_assert_msg(sock_listen_unix(path, 0600, &listener, &err) == 0, "%s", err.text);
    ck_assert_int_eq(sock_connect_unix(path, &client, &err), 0);
    server = accept(listener, NULL, NULL);
    ck_assert_int_ge(server, 0);
    ck_assert_int_eq(sock_peer_of(server, &peer, &err), 0);
    ck_assert_int_eq(peer.pid, getpid());
    ck_assert_uint_eq(peer.uid, geteuid());
    ck_assert_int_eq(write(client, "x", 1), 1);
    ck_assert_int_eq(read(server, &c, 1), 1);
    ck_assert_int_eq(c, 'x');
    close(client);
    close(server);
    close(listener);
    free(path);
}
END_TEST

START_TEST(the_listener_has_its_mode_and_does_not_block_or_leak)
{
    char *path = scratch_path("s");
    struct stat st;
    int fd;

    umask(077);
    ck_assert_int_eq(sock_listen_unix(path, 0660, &fd, NULL), 0);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0660);
    ck_assert_int_ne(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    ck_assert_int_ne(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    ck_assert_int_lt(accept(fd, NULL, NULL), 0);
    close(fd);
    free(path);
}
END_TEST

START_TEST(a_socket_that_nobody_listens_on_is_replaced)
{
    char *path = scratch_path("s");
    struct err err;
    int fd;

    ck_assert_int_eq(sock_listen_unix(path, 0600, &fd, &err), 0);
    close(fd);
    ck_assert_int_eq(sock_connect_unix(path, &fd, &err), -ERR_NOT_FOUND);
    ck_assert_int_eq(sock_listen_unix(path, 0600, &fd, &err), 0);
    close(fd);
    free(path);
}
END_TEST

START_TEST(a_socket_in_use_is_left_alone)
{
    char *path = scratch_path("s");
    struct err err;
    int fd, other = -7, client;

    ck_assert_int_eq(sock_listen_unix(path, 0600, &fd, &err), 0);
    ck_assert_int_eq(sock_listen_unix(path, 0600, &other, &err), -ERR_CONFLICT);
    ck_assert_ptr_nonnull(strstr(err.text, path));
    ck_assert_int_eq(other, -7);
    ck_assert_int_eq(sock_connect_unix(path, &client, &err), 0);
    close(client);
    close(fd);
    free(path);
}
END_TEST

START_TEST(a_listener_with_a_full_backlog_is_in_use)
{
    char *path = scratch_path("s");
    int fd, other, clients[200], n = 0;

    ck_assert_int_eq(sock_listen_unix(path, 0600, &fd, NULL), 0);
    ck_assert_int_eq(listen(fd, 0), 0);
    ck_assert_int_eq(sock_connect_unix(path, &clients[n++], NULL), 0);
    ck_assert_int_eq(sock_listen_unix(path, 0600, &other, NULL), -ERR_CONFLICT);
    while (n)
        close(clients[--n]);
    close(fd);
    free(path);
}
END_TEST

START_TEST(a_file_that_is_no_socket_is_never_removed)
{
    char *path = scratch_file("s", "precious", 8);
    char *link = scratch_path("l");
    struct stat st;
    struct err err;
    int fd;

    ck_assert_int_eq(sock_listen_unix(path, 0600, &fd, &err), -ERR_CONFLICT);
    ck_assert_int_eq(symlink(path, link), 0);
    ck_assert_int_eq(sock_listen_unix(link, 0600, &fd, &err), -ERR_CONFLICT);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_size, 8);
    free(link);
    free(path);
}
END_TEST

START_TEST(a_path_that_no_address_holds_is_refused)
{
    char path[200];
    struct err err;
    int fd;

    memset(path, 'a', sizeof path);
    path[108] = '\0';
    ck_assert_int_eq(sock_listen_unix(path, 0600, &fd, &err), -ERR_INVALID);
    ck_assert_int_eq(sock_connect_unix(path, &fd, &err), -ERR_INVALID);
    ck_assert_int_eq(sock_connect_unix("", &fd, &err), -ERR_INVALID);
}
END_TEST

START_TEST(a_server_that_is_not_there_is_named_with_the_next_step)
{
    char *path = scratch_path("none");
    struct err err;
    int fd = -7;

    ck_assert_int_eq(sock_connect_unix(path, &fd, &err), -ERR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(err.text, path));
    ck_assert_ptr_nonnull(strstr(err.text, "start rnbd"));
    ck_assert_int_eq(fd, -7);
    ck_assert_int_eq(sock_listen_unix("/nowhere/s", 0600, &fd, &err), -ERR_IO);
    ck_assert_int_eq(sock_peer_of(-1, &(struct sock_peer){.pid = 0}, &err), -ERR_IO);
    free(path);
}
END_TEST

TCase *tcase_common_sock(void);
TCase *tcase_common_sock(void)
{
    TCase *tc = tcase_create("sock");

    tcase_add_test(tc, both_ends_meet_and_know_each_other);
    tcase_add_test(tc, the_listener_has_its_mode_and_does_not_block_or_leak);
    tcase_add_test(tc, a_socket_that_nobody_listens_on_is_replaced);
    tcase_add_test(tc, a_socket_in_use_is_left_alone);
    tcase_add_test(tc, a_listener_with_a_full_backlog_is_in_use);
    tcase_add_test(tc, a_file_that_is_no_socket_is_never_removed);
    tcase_add_test(tc, a_path_that_no_address_holds_is_refused);
    tcase_add_test(tc, a_server_that_is_not_there_is_named_with_the_next_step);
    return tc;
}
