/*
 * ease - lowers the memory budget while the machine is short of memory, and
 * gives it back when it no longer is.  What is decided is pressure.h's; this
 * samples once a second and asks the engine.
 *
 * The budget that was set stays the aim: one that is set anew meanwhile starts
 * afresh from there.
 *
 * Thread: LOOP.
 */
#pragma once

#include <stddef.h>

#include "common/err.h"
#include "daemon/engine/engine.h"
#include "daemon/memory/ledger.h"

struct ease;

/* ERR_UNSUPPORTED where the kernel does not say how short memory is. */
int ease_create(struct engine *e, const struct ledger *l, struct ease **ret, struct err *err);
void ease_destroy(struct ease *x); /* NULL is fine */
/* As destroy, and the budget that someone chose comes back. */
void ease_end(struct ease *x);
/* At least once a second. */
void ease_tick(struct ease *x);
/* Bytes that the budget is below what was set; NULL: 0. */
size_t ease_lowered_bytes(const struct ease *x);
