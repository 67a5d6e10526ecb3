/*
 * suspect - what is odd about a model file that is sound enough to run: said by
 * `show`, before somebody wonders about the answers.
 *
 * Thread: IO (a model of one's own).
 */
#pragma once

#include <jansson.h>

#include "daemon/model/model.h"

struct parse_room;

/* A new array of sentences; empty when nothing is odd.  room: who is charged for the parsing of its template. */
json_t *suspect_list(const struct model *m, const struct parse_room *room);
