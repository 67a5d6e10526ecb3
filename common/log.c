/* One write per line to stderr; see log.h. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/alloc.h"
#include "common/log.h"
#include "common/utf8.h"

/* A pipe takes as much in one piece: lines of several threads do not mix. */
#define LINE_MAX_BYTES 4096

static const char *const level_names[] = {
    [LOG_LEVEL_ERROR] = "error", [LOG_LEVEL_WARNING] = "warning", [LOG_LEVEL_NOTICE] = "notice",
    [LOG_LEVEL_INFO] = "info",   [LOG_LEVEL_DEBUG] = "debug",
};

static atomic_int most_level = LOG_LEVEL_INFO;
static bool to_journal;
static bool to_terminal;

void log_init(enum log_level most)
{
    log_set_level(most);
    to_journal =
        getenv("JOURNAL_STREAM") != NULL; /* NOLINT(concurrency-mt-unsafe): no threads yet */
    to_terminal = isatty(STDERR_FILENO);
    /* Whoever read our stderr may be gone; that is no reason to follow. */
    signal(SIGPIPE, SIG_IGN);
}

void log_set_level(enum log_level most)
{
    atomic_store_explicit(&most_level, (int)most, memory_order_relaxed);
}

int log_level_of(const char *name)
{
    for (int i = LOG_LEVEL_ERROR; i <= LOG_LEVEL_DEBUG; i++)
        if (strcmp(name, level_names[i]) == 0)
            return i;
    return -1;
}

struct line {
    char text[LINE_MAX_BYTES];
    size_t len;
};

__attribute__((format(printf, 2, 0))) static void add_list(struct line *l, const char *fmt,
                                                           va_list ap)
{
    size_t room = sizeof l->text - l->len;
    int n = vsnprintf(l->text + l->len, room, fmt, ap);

    if (n > 0)
        l->len += MIN((size_t)n, room - 1);
}

__attribute__((format(printf, 2, 3))) static void add(struct line *l, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    add_list(l, fmt, ap);
    va_end(ap);
}

static void add_prefix(struct line *l, enum log_level level, const char *room)
{
    if (to_journal) {
        add(l, "<%d>%s: ", (int)level, room);
        return;
    }
    if (to_terminal) {
        struct timespec now;
        struct tm tm;
        char stamp[32];

        clock_gettime(CLOCK_REALTIME, &now);
        localtime_r(&now.tv_sec, &tm);
        strftime(stamp, sizeof stamp, "%F %T", &tm);
        add(l, "%s.%03ld ", stamp, now.tv_nsec / 1000000);
    }
    add(l, "%s %s: ", level_names[level], room);
}

/* Names come from outside: one of them must not end the line or drive a terminal. */
static void tame(struct line *l)
{
    l->len -= utf8_incomplete_tail(l->text, l->len);
    for (size_t i = 0; i < l->len; i++) {
        unsigned char c = (unsigned char)l->text[i];

        if (c < 0x20 || c == 0x7F)
            l->text[i] = '?';
    }
}

void log_write(enum log_level level, const char *room, const char *message, const char *fmt, ...)
{
    int errnum = errno;
    struct line l = {.len = 0};
    size_t bare;
    va_list ap;

    if ((int)level > atomic_load_explicit(&most_level, memory_order_relaxed))
        return;
    add_prefix(&l, level, room);
    add(&l, "%s ", message);
    bare = l.len - 1;
    va_start(ap, fmt);
    add_list(&l, fmt, ap);
    va_end(ap);
    if (l.len == bare + 1)
        l.len = bare;
    tame(&l);
    l.text[l.len++] = '\n';
    while (write(STDERR_FILENO, l.text, l.len) < 0 && errno == EINTR)
        ;
    errno = errnum;
}
