/* Conversation to text.  See chat.h. */
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "daemon/chat/chat_priv.h"
#include "daemon/chat/split.h"

#define MAX_KWARGS 64

/* What a model without a template is spoken to in. */
static const char chatml[] =
    "{% for message in messages %}"
    "{{ '<|im_start|>' ~ message.role ~ '\\n' ~ message.content ~ '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

/* The roles that message.c lets pass: they may be part of a control token. */
static const char *const trusted_roles[] = {"system",    "developer", "user",
                                            "assistant", "tool",      NULL};

#define DIALECT(name) extern const struct chat_dialect chat_dialect_##name;
#include "gen/dialects.def"
#undef DIALECT

static const struct chat_dialect *const dialects[] = {
#define DIALECT(name) &chat_dialect_##name,
#include "gen/dialects.def"
#undef DIALECT
};

const struct chat_dialect *chat_dialect_of(struct view template_text)
{
    const struct chat_dialect *best = NULL;

    for (size_t i = 0; i < ARRAY_LEN(dialects); i++)
        if ((!best || dialects[i]->rank < best->rank) && dialects[i]->detect(template_text))
            best = dialects[i];
    return best;
}

int chat_template_create(const char *text, size_t len, struct chat_template **ret, struct err *err)
{
    return chat_template_create_within(text, len, TEMPLATE_MEMORY_MOST, ret, err);
}

int chat_template_create_within(const char *text, size_t len, size_t memory_bytes,
                                struct chat_template **ret, struct err *err)
{
    struct chat_template *t = XNEW(struct chat_template);
    struct view source = {text ? text : chatml, text ? len : sizeof chatml - 1};
    int r;

    str_add(&t->text, source.p, source.len);
    t->dialect = chat_dialect_of(source);
    t->think = split_think_of(source);
    r = template_parse_within(source.p, source.len, memory_bytes, &t->tmpl, err);
    if (r < 0) {
        chat_template_destroy(t);
        return r;
    }
    chat_probe(t);
    *ret = t;
    return 0;
}

size_t chat_template_memory_bytes(const struct chat_template *t)
{
    return sizeof *t + t->text.len + 1 + template_memory_bytes(t->tmpl);
}

void chat_template_destroy(struct chat_template *t)
{
    if (!t)
        return;
    template_destroy(t->tmpl);
    str_clear(&t->text);
    free(t);
}

const char *chat_template_dialect(const struct chat_template *t)
{
    return t->dialect->name;
}

bool chat_template_shows(const struct chat_template *t, struct view token)
{
    const struct chat_think *think = t->think;
    const char *const tags[] = {think ? think->open : NULL, think ? think->close : NULL, NULL};
    const struct chat_dialect *d = t->dialect;

    return d->special || (think && think->special) || split_marks(tags, token) ||
           split_marks(d->opens, token) || split_marks(d->drops, token) ||
           split_marks(d->marks, token);
}

struct vars {
    struct template_var list[MAX_KWARGS + 8];
    size_t n;
};

static void add_var(struct vars *v, const char *name, const json_t *value,
                    enum template_origin origin)
{
    v->list[v->n++] = (struct template_var){name, (json_t *)(uintptr_t)value, origin};
}

static int add_kwargs(struct vars *v, const json_t *kwargs, struct err *err)
{
    static const char *const ours[] = {"messages", "tools", "bos_token", "eos_token",
                                       "add_generation_prompt"};
    const char *key;
    json_t *value;

    if (json_object_size(kwargs) > MAX_KWARGS)
        return err_set_param(err, ERR_INVALID, "chat_template_kwargs",
                             "chat_template_kwargs has more than %d keys", MAX_KWARGS);
    json_object_foreach((json_t *)(uintptr_t)kwargs, key, value)
    {
        for (size_t i = 0; i < ARRAY_LEN(ours); i++)
            if (strcmp(key, ours[i]) == 0)
                return err_set_param(err, ERR_INVALID, "chat_template_kwargs",
                                     "chat_template_kwargs cannot set '%s'", key);
        add_var(v, key, value, TEMPLATE_ORIGIN_MESSAGE);
    }
    return 0;
}

int chat_render_raw(const struct chat_template *t, const json_t *messages, const json_t *tools,
                    const struct chat_options *options, struct template_output *ret_out,
                    struct err *err)
{
    json_t *bos = json_string(options->bos_token ? options->bos_token : "");
    json_t *eos = json_string(options->eos_token ? options->eos_token : "");
    struct vars v = {.n = 0};
    struct template_context context = {
        .vars = v.list,
        .trusted_key = "role",
        .trusted_words = trusted_roles,
        .now = options->now,
    };
    int r;

    add_var(&v, "documents", json_null(), TEMPLATE_ORIGIN_TRUSTED);
    r = add_kwargs(&v, options->kwargs, err);
    if (r < 0)
        goto out;
    add_var(&v, "messages", messages, TEMPLATE_ORIGIN_MESSAGE);
    if (json_array_size(tools) || t->can.none_tools)
        add_var(&v, "tools", json_array_size(tools) ? tools : json_null(), TEMPLATE_ORIGIN_MESSAGE);
    add_var(&v, "bos_token", bos, TEMPLATE_ORIGIN_TRUSTED);
    add_var(&v, "eos_token", eos, TEMPLATE_ORIGIN_TRUSTED);
    add_var(&v, "add_generation_prompt",
            options->add_generation_prompt ? json_true() : json_false(), TEMPLATE_ORIGIN_TRUSTED);
    context.n_vars = v.n;
    r = template_render(t->tmpl, &context, options->limits, ret_out, err);
out:
    json_decref(bos);
    json_decref(eos);
    return r;
}

int chat_render(const struct chat_template *t, const json_t *messages, const json_t *tools,
                const struct chat_options *options, struct template_output *ret_out,
                struct err *err)
{
    json_t *normal = NULL;
    int r;

    if (json_array_size(tools) && !t->can.tools)
        return err_set_param(err, ERR_UNPROCESSABLE, "tools",
                             "the chat template of this model has no place for tools");
    if (json_array_size(tools) && !t->dialect->call && !t->dialect->step)
        return err_set_param(err, ERR_UNPROCESSABLE, "tools",
                             "this model writes tool calls in a way that rnbd does not know; leave "
                             "tools out");
    r = chat_normalise(t, messages, &normal, err);
    if (r < 0)
        return r;
    r = chat_render_raw(t, normal, tools, options, ret_out, err);
    json_decref(normal);
    return r;
}
