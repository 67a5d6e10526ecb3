/*
 * verify - a whole model file read once: the SHA-256 of each part, and every
 * value of every tensor looked at.
 *
 * It goes on in steps, so that what else is asked of the IO thread is answered
 * in between.
 *
 * Thread: IO.
 */
#pragma once

#include <jansson.h>

#include "common/err.h"

struct engine;
struct job;
struct verify;

/* Opens the file at the first step.  Reads on; *ret is set (new reference) when all is read, else NULL. */
int verify_step(struct engine *e, struct job *j, json_t **ret, struct err *err);
void verify_destroy(struct verify *v); /* NULL is fine */
