/*
 * scratch - a folder for the files of one test, and whole files in it.
 *
 * scratch_make() also arranges that the folder is gone when the test's process
 * ends, also when it ends by a failed check.
 */
#pragma once

/* The folder's path; the same for every call in one test. */
const char *scratch_make(void);

/* Removes it now; the next call makes another.  0, or else something could not be removed. */
int scratch_remove(void);

/* "<folder>/name", a new string. */
char *scratch_path(const char *name);

/* Makes a file in it; returns its path, a new string. */
char *scratch_file(const char *name, const void *bytes, unsigned long n);
