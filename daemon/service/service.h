/*
 * service - systemd, alone: readiness, status lines, watchdog, inherited
 * sockets, credentials, and the signals that stop and reload.
 *
 * Everything is a no-op outside systemd, so main need not ask.
 *
 * Thread: LOOP (main before start).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

struct event_base;

/* Sockets by FileDescriptorName=; -1 where none was passed.  Others that were passed are closed. */
struct service_sockets {
    int http;
    int control;
};
int service_inherit(struct service_sockets *ret, struct err *err);

/* Path of the credential of that name, if the unit passed one (a new string), else NULL. */
char *service_credential(const char *name);

/* READY=1 once; then STATUS=, RELOADING=1 with its time stamp and READY=1 again, STOPPING=1. */
void service_ready(void);
void service_status(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void service_reloading(void);
void service_stopping(void);

/*
 * The watchdog: while alive() says true, WATCHDOG=1 goes out at half the time
 * that the unit gave.  Does nothing when the unit has none.  A loop that hangs,
 * or an engine that shows no sign of life, is restarted by systemd.
 */
struct service_watchdog;
struct service_watchdog *service_watchdog_start(struct event_base *base, bool (*alive)(void *arg),
                                                void *arg);
void service_watchdog_stop(struct service_watchdog *w);
/* What the unit gave, 0 when none: how old a heartbeat may be. */
int64_t service_watchdog_ms(void);

/* SIGTERM and SIGINT → stop (a second one: at once), SIGHUP → reload.  SIGPIPE is ignored. */
struct service_signals;
struct service_signals *service_signals_start(struct event_base *base,
                                              void (*stop)(void *arg, bool again),
                                              void (*reload)(void *arg), void *arg);
void service_signals_stop(struct service_signals *s);
