/*
 * ini - the grammar of rnbd.conf, over libinih: "[section]" or "[section
 * NAME]", "key = value", "#" comments on a line of their own.
 *
 * Knows no keys: the caller's handler gets every one with its line, and
 * answers with an error of its own, which comes back with file and line in
 * front.
 */
#pragma once

#include "common/err.h"

struct ini_entry {
    const char *file;
    int line;
    const char *section; /* "model" of "[model NAME]"; "" before the first section */
    const char *name;    /* "NAME", or "" */
    const char *key;
    const char *value;
};

typedef int ini_fn(void *arg, const struct ini_entry *e, struct err *err);

/* Reads path; stops at the first error. */
int ini_read(const char *path, ini_fn *handler, void *arg, struct err *err);
/* The same on text that is already in memory; file is used in messages. */
int ini_read_text(const char *file, const char *text, ini_fn *handler, void *arg, struct err *err);
