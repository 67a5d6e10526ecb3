/*
 * cmd - what a verb of rnbctl is, and what all verbs share.
 *
 * A verb is one file cmd_NAME.c that defines
 *
 *     const struct verb verb_NAME = {...};
 *
 * (the build collects these).  It parses its arguments by a table, calls
 * methods of the daemon, and prints text for people or, with --json, what the
 * daemon answered.
 *
 * Exit status: 0 done, 1 refused or failed (one sentence on stderr), 2 wrong usage.
 */
#pragma once

#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/str.h"

enum { EXIT_OK, EXIT_REFUSED, EXIT_USAGE };

struct client {
    const char *socket;
    bool json;     /* print what the RPC answered */
    bool tty;      /* stdout is a terminal */
    bool progress; /* stderr is one: draw bars */
    int fd;        /* of the connection; -1: none yet */
    struct str *in;
    int64_t last_id;
    const volatile sig_atomic_t *interrupt; /* set by Ctrl-C where a verb catches it, else NULL */
};

struct verb {
    const char *name;
    const char *synopsis; /* after the name */
    const char *help;     /* one line */
    const char *methods;  /* of the daemon that it calls, separated by spaces; "" none */
    int (*run)(struct client *c, int argc, char **argv); /* argv[0] is the verb */
};

const struct verb *verb_find(const char *name);
const struct verb *const *verb_list(size_t *ret_n);
/* Says what is wrong and how the verb is used.  Returns -1. */
int usage_error(const struct verb *v, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* After args_parse gave n: says what is missing unless it has said so itself.  Returns EXIT_USAGE. */
int wrong_usage(const struct verb *v, int n, const char *sentence);

/* -- args.c: options by table ------------------------------------------------------------------ */

enum arg_type { ARG_FLAG, ARG_TEXT, ARG_INT, ARG_REAL };

struct arg {
    const char *name;  /* without the dashes */
    const char *value; /* what to call its value in help; NULL for a flag */
    enum arg_type type;
    void *out; /* bool, const char *, int64_t, double */
    const char *help;
};

/*
 * Takes options out of argv wherever they stand; what is left is positional
 * ("--" ends options).  Returns how many positional arguments there are, with
 * pointers to them in argv[1 …], or a negative number after saying what is wrong.
 */
int args_parse(const struct verb *v, int argc, char **argv, const struct arg *args, size_t n_args);

/* Name or file: a file becomes an absolute path, because the daemon stands elsewhere (a new string). */
char *args_target(const char *text);
bool args_is_file(const char *text);

/* -- call.c: the daemon ------------------------------------------------------------------------- */

/* A notification that belongs to the call in progress. */
typedef void notify_fn(void *arg, const char *method, const json_t *params);

/* Calls a method; take_params may be NULL.  The result is a new reference. */
int call_method(struct client *c, const char *method, json_t *take_params, notify_fn *notify,
                void *arg, json_t **ret_result, struct err *err);
void call_close(struct client *c); /* also gives up what is in flight */

/* Calls; on failure prints the sentence and gives EXIT_REFUSED; with --json prints the result and gives EXIT_OK
 * with *ret_result NULL; else hands the result over (EXIT_OK). */
int call_or_print(struct client *c, const char *method, json_t *take_params, notify_fn *notify,
                  void *arg, json_t **ret_result);
int print_error(const struct err *err);
void print_json(const json_t *value);

/* -- output.c ------------------------------------------------------------------------------------ */

/* Names and texts come from files and models: a control character, which a terminal would obey, becomes U+FFFD. */
void print_text(const char *text, bool one_line);

/* Rows of cells, aligned when printed; a cell that begins with '>' is right-aligned without it. */
struct table;
struct table *table_create(const char *const *heads, size_t n);
void table_row(struct table *t, ...);               /* n strings */
void table_cell(struct table *t, const char *text); /* one, the next of its row */
void table_print_and_destroy(struct table *t);

/* A bar on a terminal, a line for each tenth in a pipe; step names what is going on. */
struct progress {
    char step[32];
    int last_tenth;
    bool drawn;
};
void progress_show(struct client *c, struct progress *p, const char *step, double done,
                   double total, bool bytes);
void progress_end(struct client *c, struct progress *p);
/* A notify_fn for loads: arg is a struct load_progress. */
struct load_progress {
    struct client *client;
    struct progress bar;
};
void load_notify(void *arg, const char *method, const json_t *params);

/* What more than one verb shows: the tables of loaded models (cmd_models.c), of requests (cmd_requests.c). */
void print_loaded(const json_t *models);
void print_requests(const json_t *requests);

/* Getters with a default, for results that are trusted to be the daemon's. */
const char *text_of(const json_t *o, const char *key);
double number_of(const json_t *o, const char *key);
/* "1.50 GiB" in one of a few rotating buffers. */
const char *size_text(double bytes);
const char *time_text(double ms);
const char *format_text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
