/* Renders a template with variables given as JSON, for the unit tests of this room. */
#pragma once

#include <jansson.h>
#include <string.h>

#include "daemon/template/template.h"

struct rendered {
    int r;
    struct err err;
    struct template_output out;
    char shown[4096]; /* the text, with « » round what came from a message */
};

/*
 * trusted_json and message_json: objects, or NULL.  The caller clears ret->out
 * by rendered_clear().
 */
void render(struct rendered *ret, const char *text, const char *trusted_json,
            const char *message_json, const struct template_limits *limits);
void rendered_clear(struct rendered *r);

/* The shown text of a template with message variables alone; static, until the next call. */
const char *marked(const char *text, const char *message_json);
/* As marked, without the marks, or the error. */
const char *plain(const char *text);
