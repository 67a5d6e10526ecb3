/* POST /v1/completions: the body to a request; see openai.h. */
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "daemon/openai/openai_priv.h"

static int take_text(struct request *q, const json_t *value)
{
    return params_text(value, &q->prompt, &q->prompt_len);
}

static int take_ids(struct request *q, const char *name, const json_t *list, struct err *err)
{
    return params_ids(name, list, &q->prompt_ids, &q->n_prompt_ids, err);
}

static int parse_prompt(struct parse *p, const char *name, const json_t *value, struct err *err)
{
    const json_t *first = json_array_get(value, 0);

    if (json_is_string(value))
        return take_text(p->request, value);
    if (!json_is_array(value) || !first)
        return params_wrong(err, name, "a text or an array of token ids");
    if (json_is_integer(first))
        return take_ids(p->request, name, value, err);
    if (json_array_size(value) > 1)
        return err_set_param(
            err, ERR_UNPROCESSABLE, name,
            "'%s' holds %zu prompts; send them one by one, rnbd answers one at a time", name,
            json_array_size(value));
    if (json_is_string(first))
        return take_text(p->request, first);
    return json_is_array(first) ? take_ids(p->request, name, first, err)
                                : params_wrong(err, name, "a text or an array of token ids");
}

static int parse_echo(struct parse *p, const char *name, const json_t *value, struct err *err)
{
    if (!json_is_boolean(value))
        return params_wrong(err, name, "true or false");
    p->request->echo = json_is_true(value);
    return 0;
}

static int parse_logprobs(struct parse *p, const char *name, const json_t *value, struct err *err)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > 20)
        return params_wrong(err, name, "a whole number from 0 to 20");
    p->request->logprobs = p->reply.logprobs = true;
    p->request->n_top_logprobs = (unsigned)json_integer_value(value);
    return 0;
}

static int parse_suffix(struct parse *p, const char *name, const json_t *value, struct err *err)
{
    (void)p;
    if (json_is_string(value) && json_string_length(value) == 0)
        return 0;
    return err_set_param(err, ERR_UNPROCESSABLE, name,
                         "'%s' is not supported by this version; leave it out", name);
}

static int parse_best_of(struct parse *p, const char *name, const json_t *value, struct err *err)
{
    if (json_is_integer(value) && json_integer_value(value) == (json_int_t)p->request->n)
        return 0;
    return err_set_param(err, ERR_UNPROCESSABLE, name,
                         "'%s' can only be the same as 'n'; leave it out", name);
}

static const struct field fields[] = {
    {"prompt", FACE_COMPLETION, parse_prompt},     {"echo", FACE_COMPLETION, parse_echo},
    {"logprobs", FACE_COMPLETION, parse_logprobs}, {"suffix", FACE_COMPLETION, parse_suffix},
    {"best_of", FACE_COMPLETION, parse_best_of},
};

int openai_completion(const json_t *body, struct request **ret_request, struct reply **ret_reply,
                      struct err *err)
{
    struct parse p = {.face = FACE_COMPLETION, .request = request_create(REQUEST_COMPLETION)};
    int r = params_parse(&p, body, fields, ARRAY_LEN(fields), err);

    if (r >= 0 && !p.request->prompt && !p.request->prompt_ids)
        r = params_wrong(err, "prompt", "a text or an array of token ids");
    if (r >= 0)
        r = sampling_check(&p.request->sampling, err);
    if (r < 0) {
        request_destroy(p.request);
        return r;
    }
    /* OpenAI's default here; a chat answer ends by itself, a completion often does not. */
    if (p.request->max_tokens < 0)
        p.request->max_tokens = 16;
    *ret_request = p.request;
    *ret_reply = reply_create(REQUEST_COMPLETION, &p.reply, p.request->n);
    return 0;
}
