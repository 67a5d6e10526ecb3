/*
 * kit_routers - which experts a model chose, row by row, and by how much: a
 * backend that passes all ops on to another one and looks at routers.
 *
 * A run with rounded keys may choose another expert than one without where two
 * nearly tie; everything behind that differs then.  kit_routers_compare() says
 * whether that is what happened.
 */
#pragma once

#include "backends/backend.h"

struct kit_choice {
    size_t pos;
    int layer;
    unsigned n_expert, n_used;
    int32_t *ids;   /* [n_used] */
    double *scores; /* [n_expert] that experts compete with */
};

/* In the order in which they were made. */
struct kit_choices {
    struct kit_choice *list;
    size_t n, cap;
};

void kit_choices_clear(struct kit_choices *c);

/* ops, watched: one at a time, for as long as the program runs. */
const struct backend_ops *kit_routers_watch(const struct backend_ops *ops);
/* Choices from here on go to c; NULL: nowhere. */
void kit_routers_to(struct kit_choices *c);

struct kit_flips {
    size_t n;     /* choices that differ */
    size_t first; /* the first position with such a choice; SIZE_MAX: none */
    double apart; /* the most that two experts that changed places differed in their scores, where
                        nothing before had changed any */
};

/* The choices of one run and of another of the same tokens, before the position end. */
struct kit_flips kit_routers_compare(const struct kit_choices *exact,
                                     const struct kit_choices *rounded, size_t end);
