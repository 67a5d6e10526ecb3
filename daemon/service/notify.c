/* Messages to the service manager and the watchdog timer; see service.h. */
#include <event2/event.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "common/alloc.h"
#include "common/clock.h"
#include "daemon/service/service.h"

void service_ready(void)
{
    sd_notify(0, "READY=1");
}

void service_status(const char *fmt, ...)
{
    static char said[256];
    char text[sizeof said];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (strcmp(text, said) == 0)
        return;
    memcpy(said, text, sizeof said);
    sd_notifyf(0, "STATUS=%s", text);
}

void service_reloading(void)
{
    sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)clock_us());
}

void service_stopping(void)
{
    sd_notify(0, "STOPPING=1");
}

struct service_watchdog {
    struct event *timer;
    bool (*alive)(void *arg);
    void *arg;
};

int64_t service_watchdog_ms(void)
{
    uint64_t usec = 0;

    return sd_watchdog_enabled(0, &usec) > 0 ? (int64_t)(usec / 1000) : 0;
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct service_watchdog *w = arg;

    (void)fd;
    (void)what;
    if (w->alive(w->arg))
        sd_notify(0, "WATCHDOG=1");
}

struct service_watchdog *service_watchdog_start(struct event_base *base, bool (*alive)(void *arg),
                                                void *arg)
{
    int64_t every_ms = service_watchdog_ms() / 2;
    struct timeval tv = {.tv_sec = every_ms / 1000, .tv_usec = every_ms % 1000 * 1000};
    struct service_watchdog *w;

    if (every_ms == 0)
        return NULL;
    w = XNEW(struct service_watchdog);
    w->alive = alive;
    w->arg = arg;
    w->timer = event_new(base, -1, EV_PERSIST, on_timer, w);
    event_add(w->timer, &tv);
    return w;
}

void service_watchdog_stop(struct service_watchdog *w)
{
    if (!w)
        return;
    event_free(w->timer);
    free(w);
}
