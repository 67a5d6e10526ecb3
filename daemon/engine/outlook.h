/*
 * outlook - a plan on its way from IO, which has looked at the file, to ENGINE,
 * which knows the rates of the machine and what is known of the model's routing.
 */
#pragma once

#include <jansson.h>

#include "daemon/memory/curve_profile.h"
#include "daemon/model/model.h"

/* A file of the model: parts may lie on different drives. */
struct outlook_part {
    char *path;
    double bytes; /* of tensors */
};

struct outlook {
    json_t *result; /* what is answered; speed comes into it */
    struct model_info info;
    struct model_work work;
    struct placement placement;
    size_t n_ctx, n_batch;
    struct outlook_part *parts;
    size_t n_parts;
};

void outlook_destroy(struct outlook *o); /* NULL is fine */
/* Its parts, of a file that is open. */
void outlook_add_parts(struct outlook *o, const struct gguf *g);

/* ENGINE: keeps what a model has taught about its routing; before it leaves. */
struct engine;
struct slot;
void outlook_remember(const struct engine *e, const struct slot *s);
