/*
 * file - whole small files, and atomic replacement.
 *
 * Large files (models) are read by daemon/memory/stream; this is for
 * configuration, credentials, /proc and /sys, and test data.
 *
 * Any thread but LOOP after start (may block on the disk).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/err.h"
#include "common/str.h"

/* Reads all of path, at most max bytes (more is an error).  Files of size 0 (/proc) are read to the end. */
int file_read_all(const char *path, size_t max, struct str *ret_text, struct err *err);

/* Writes beside path, fsyncs and renames over it: the old or the new, never half. */
int file_replace(const char *path, const void *bytes, size_t n, unsigned mode, struct err *err);

/* Reads exactly n bytes at offset, retrying short reads and EINTR.  A file that ends earlier is an error. */
int file_pread_all(int fd, void *buf, size_t n, off_t offset, const char *name, struct err *err);

int file_make_dirs(const char *path, unsigned mode, struct err *err); /* mkdir -p */
bool file_exists(const char *path);
char *file_join(const char *dir, const char *name); /* a new string */
