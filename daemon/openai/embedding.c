/* POST /v1/embeddings: the body to a request, its vectors to the answer; see openai.h. */
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "daemon/openai/reply_priv.h"

/* As OpenAI's own API. */
#define MAX_INPUTS 2048

#define MUST_BE                                                                                    \
    "a text, an array of token ids, or an array of at most 2048 of these, none of them empty"

static int add_input(struct request *q, const char *name, const json_t *value, struct err *err)
{
    struct request_input *in = &q->inputs[q->n_inputs++];

    if (json_is_string(value) && json_string_length(value) > 0)
        return params_text(value, &in->text, &in->len);
    if (json_is_array(value) && json_array_size(value) > 0)
        return params_ids(name, value, &in->ids, &in->n_ids, err);
    return params_wrong(err, name, MUST_BE);
}

static int parse_input(struct parse *p, const char *name, const json_t *value, struct err *err)
{
    struct request *q = p->request;
    size_t n = json_array_size(value), i;
    bool one = json_is_string(value) || json_is_integer(json_array_get(value, 0));
    json_t *item;
    int r = 0;

    if (!one && (n == 0 || n > MAX_INPUTS))
        return params_wrong(err, name, MUST_BE);
    q->inputs = XNEW_ARRAY(struct request_input, one ? 1 : n);
    if (one)
        return add_input(q, name, value, err);
    json_array_foreach(value, i, item)
    {
        if (r >= 0)
            r = add_input(q, name, item, err);
    }
    return r;
}

static int parse_encoding(struct parse *p, const char *name, const json_t *value, struct err *err)
{
    const char *s = json_string_value(value);

    if (!s || (strcmp(s, "float") != 0 && strcmp(s, "base64") != 0))
        return params_wrong(err, name, "\"float\" or \"base64\"");
    p->reply.base64 = strcmp(s, "base64") == 0;
    return 0;
}

/* A shorter vector would have to be cut, which a model that was not trained so does not bear. */
static int parse_dimensions(struct parse *p, const char *name, const json_t *value, struct err *err)
{
    (void)p;
    (void)value;
    return err_set_param(err, ERR_UNPROCESSABLE, name,
                         "'%s' is not supported: a vector has as many numbers as its model gives; "
                         "leave it out",
                         name);
}

static const struct field fields[] = {
    {"input", FACE_EMBEDDING, parse_input},
    {"encoding_format", FACE_EMBEDDING, parse_encoding},
    {"dimensions", FACE_EMBEDDING, parse_dimensions},
};

int openai_embedding(const json_t *body, struct request **ret_request, struct reply **ret_reply,
                     struct err *err)
{
    struct parse p = {.face = FACE_EMBEDDING, .request = request_create(REQUEST_EMBEDDING)};
    int r = params_parse(&p, body, fields, ARRAY_LEN(fields), err);

    if (r >= 0 && !p.request->n_inputs)
        r = params_wrong(err, "input", MUST_BE);
    if (r < 0) {
        request_destroy(p.request);
        return r;
    }
    *ret_request = p.request;
    *ret_reply = reply_create(REQUEST_EMBEDDING, &p.reply, 0);
    return 0;
}

/* -- the answer --------------------------------------------------------------------------- */

static json_t *as_list(const float *v, size_t n)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, reply_float(v[i]));
    return list;
}

/* RFC 4648 section 4. */
static json_t *as_base64(const float *v, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *p = (const unsigned char *)v;
    size_t len = n * sizeof *v;
    struct str s = {0};
    json_t *text;

    for (size_t i = 0; i < len; i += 3) {
        unsigned have = (unsigned)MIN(3, len - i);
        unsigned bits = (unsigned)p[i] << 16 | (have > 1 ? (unsigned)p[i + 1] << 8 : 0) |
                        (have > 2 ? p[i + 2] : 0);

        for (unsigned k = 0; k < 4; k++)
            str_addc(&s, k <= have ? digits[bits >> (18 - 6 * k) & 63] : '=');
    }
    text = json_text(str_text(&s), s.len);
    str_clear(&s);
    return text;
}

static void write_answer(struct reply *r, const struct event *ev, struct str *out)
{
    json_t *o = json_object();
    json_int_t n = (json_int_t)ev->usage.prompt_tokens;

    json_object_set_new(o, "object", json_string("list"));
    json_object_set(o, "data", r->vectors);
    json_object_set_new(o, "model", json_string(r->model));
    json_object_set_new(o, "usage", json_pack("{s:I, s:I}", "prompt_tokens", n, "total_tokens", n));
    json_object_set_new(o, "timings", reply_timings(&ev->timings));
    json_dump_to(o, out);
    json_decref(o);
}

void embedding_event(struct reply *r, const struct event *ev, struct str *out)
{
    json_t *v;

    switch (ev->kind) {
    case EVENT_EMBEDDING:
        v = r->opt.base64 ? as_base64(ev->embedding, ev->n_embedding)
                          : as_list(ev->embedding, ev->n_embedding);
        json_array_append_new(r->vectors, json_pack("{s:s, s:i, s:o}", "object", "embedding",
                                                    "index", (int)ev->choice, "embedding", v));
        break;
    case EVENT_DONE: write_answer(r, ev, out); break;
    case EVENT_FAILED: openai_error(ev->error, out); break;
    default: break;
    }
}
