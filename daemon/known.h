/*
 * known - tells the engine which models there are: the [model NAME] sections,
 * --model, and the *.gguf files of models.dir under their file names.
 *
 * Thread: main before start, then LOOP (reload).
 */
#pragma once

#include "common/err.h"
#include "daemon/engine/engine.h"
#include "daemon/settings.h"

/* Can the models folder be read?  What else known_apply would do is left undone. */
int known_check(const struct settings *s, struct err *err);

/* Adds or replaces all known models and forgets the ones that are no longer there. */
int known_apply(const struct settings *s, struct engine *e, struct err *err);
