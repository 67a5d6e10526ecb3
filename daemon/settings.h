/*
 * settings - one table for the config file, the command line and RPC.
 *
 * Every key is a row of settings.def; struct settings is made of each room's
 * own options struct, and main passes these down: no room reads a global.
 * Order of authority: command line, then conf.d/ drop-ins (by name), then
 * rnbd.conf, then the default in the row.  An unknown key or a bad value is an
 * error with file and line.
 *
 * Thread: main before start, then LOOP (reload).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/backend.h"
#include "common/err.h"
#include "common/str.h"
#include "daemon/control/control.h"
#include "daemon/engine/engine.h"
#include "daemon/http/http.h"

struct settings {
    int log_level;
    int64_t stop_timeout_ms;
    uint64_t ram_bytes;
    int give_way; /* to other programs, while memory is short */
    char *cpu;
    char *models_dir;
    struct backend_options backend;
    struct engine_options engine;
    struct http_options http;
    struct control_options control;
    struct engine_model_entry *models; /* of [model NAME] and --model */
    size_t n_models, cap_models;

    /* Where it came from. */
    char *config_file;     /* NULL: none was read */
    uint64_t usable_bytes; /* of the machine: what a share is a share of */
    bool check_only, print_only;
};

/*
 * Reads defaults, the config file (--config, else the standard place if it is
 * there) with its drop-ins, and the command line.  usable_bytes: what a share
 * ("75%") is a share of.  Returns 0, or 1 when --help or --version has been
 * printed, or a negative kind.
 */
int settings_read(int argc, char **argv, uint64_t usable_bytes, struct settings *ret,
                  struct err *err);
void settings_clear(struct settings *s);

/* The configuration in force, as a config file with help as comments. */
void settings_print(const struct settings *s, struct str *out);

/*
 * Compares a fresh reading with what is in force: calls changed for each key
 * that differs, with live = it can be applied now.
 */
void settings_diff(const struct settings *now, const struct settings *fresh,
                   void (*changed)(void *arg, const char *section, const char *key, bool live),
                   void *arg);
