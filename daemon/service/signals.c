/* Signals as events of the loop; see service.h. */
#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>

#include "common/alloc.h"
#include "daemon/service/service.h"

struct service_signals {
    struct event *term, *interrupt, *hangup;
    void (*stop)(void *arg, bool again);
    void (*reload)(void *arg);
    void *arg;
    bool stopping;
};

static void on_stop(evutil_socket_t signal_number, short what, void *arg)
{
    struct service_signals *s = arg;
    bool again = s->stopping;

    (void)signal_number;
    (void)what;
    s->stopping = true;
    s->stop(s->arg, again);
}

static void on_hangup(evutil_socket_t signal_number, short what, void *arg)
{
    struct service_signals *s = arg;

    (void)signal_number;
    (void)what;
    s->reload(s->arg);
}

struct service_signals *service_signals_start(struct event_base *base,
                                              void (*stop)(void *arg, bool again),
                                              void (*reload)(void *arg), void *arg)
{
    struct service_signals *s = XNEW(struct service_signals);

    s->stop = stop;
    s->reload = reload;
    s->arg = arg;
    s->term = evsignal_new(base, SIGTERM, on_stop, s);
    s->interrupt = evsignal_new(base, SIGINT, on_stop, s);
    s->hangup = evsignal_new(base, SIGHUP, on_hangup, s);
    event_add(s->term, NULL);
    event_add(s->interrupt, NULL);
    event_add(s->hangup, NULL);
    signal(SIGPIPE, SIG_IGN);
    return s;
}

void service_signals_stop(struct service_signals *s)
{
    if (!s)
        return;
    event_free(s->term);
    event_free(s->interrupt);
    event_free(s->hangup);
    free(s);
}
