/*
 * chat_priv - what a chat_template holds, for the files of this room.
 */
#pragma once

#include "daemon/chat/chat.h"
#include "daemon/chat/dialect.h"

/* What the probe renderings of a template showed. */
struct chat_abilities {
    bool system;       /* a system message appears in the text */
    bool parts;        /* content may be a list of parts */
    bool text_content; /* content may be a string */
    bool none_tools;   /* works with tools set to none, as Hugging Face sets it; else left out */
    bool tools;        /* the tools appear */
    bool tool_calls;   /* calls of earlier answers appear */
    bool tool_results; /* tool messages appear */
    bool object_arguments; /* arguments of calls may be an object */
    bool text_arguments;   /* they may be JSON text, and come out as it stands */
    bool null_content;     /* content of a message that only calls is null, not "" */
    bool developer;        /* knows the role by name */
};

struct chat_template {
    struct template *tmpl;
    struct str text;
    struct chat_abilities can;
    const struct chat_dialect *dialect;
    const struct chat_think *think; /* NULL: no reasoning */
};

/* Renders probes; called once, by chat_template_create. */
void chat_probe(struct chat_template *t);

/* The messages as the template wants them: a new reference. */
int chat_normalise(const struct chat_template *t, const json_t *messages, json_t **ret_messages,
                   struct err *err);

/* Renders messages that are normalised already. */
int chat_render_raw(const struct chat_template *t, const json_t *messages, const json_t *tools,
                    const struct chat_options *options, struct template_output *ret_out,
                    struct err *err);

const struct chat_dialect *chat_dialect_of(struct view template_text);
