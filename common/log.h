/*
 * log - one line per event, for a person and for the journal.
 *
 * Whoever can return an error does, and logs nothing.  What is left is what
 * no answer tells:
 *
 *     daemon            start, stop, reload, model files that are left out, a
 *                       budget that follows the machine
 *     daemon/control    a change that somebody asked for, and who
 *     daemon/engine     the end of a request; models that come, go or give
 *                       back memory; what was measured for a plan
 *     daemon/http       connections that cannot be taken
 *     daemon/memory     what it does instead: growing that is refused, the
 *                       cliff guard, another way of reading
 *
 * A message is a lower-case sentence, then key=value pairs; quotes stand round
 * names:
 *
 *     log_notice("unloaded model", "model='%s' bytes=%s", name, freed);
 *
 * NOTICE: what is resident changed.  INFO: one line per request.  WARNING
 * says what we do instead.  ERROR only where nobody above will.
 *
 * To the journal: "<N>" prefixes on stderr when JOURNAL_STREAM is set; time
 * stamps only on a terminal.  The room tag comes from the Makefile
 * (-DLOG_ROOM).  A full disk behind stderr loses lines, never the daemon.
 *
 * Any thread but TEAM.
 */
#pragma once

enum log_level {
    LOG_LEVEL_ERROR = 3,
    LOG_LEVEL_WARNING,
    LOG_LEVEL_NOTICE,
    LOG_LEVEL_INFO,
    LOG_LEVEL_DEBUG
};

/* Called once by main, before threads start. */
void log_init(enum log_level most);
void log_set_level(enum log_level most);
/* "error", "warning", "notice", "info", "debug"; -1 when it is none of them. */
int log_level_of(const char *name);

void log_write(enum log_level level, const char *room, const char *message, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#define log_error(msg, ...)   log_write(LOG_LEVEL_ERROR, LOG_ROOM, msg, __VA_ARGS__)
#define log_warning(msg, ...) log_write(LOG_LEVEL_WARNING, LOG_ROOM, msg, __VA_ARGS__)
#define log_notice(msg, ...)  log_write(LOG_LEVEL_NOTICE, LOG_ROOM, msg, __VA_ARGS__)
#define log_info(msg, ...)    log_write(LOG_LEVEL_INFO, LOG_ROOM, msg, __VA_ARGS__)
#define log_debug(msg, ...)   log_write(LOG_LEVEL_DEBUG, LOG_ROOM, msg, __VA_ARGS__)
