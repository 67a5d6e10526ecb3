/* The fields that more than one face knows; see openai.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/alloc.h"
#include "common/clock.h"
#include "common/units.h"
#include "daemon/openai/openai_priv.h"

int params_only_keys(const json_t *object, const char *name, const char *const *keys,
                     struct err *err)
{
    char param[96];
    struct err inner;

    if (json_only_keys(object, keys, &inner) >= 0)
        return 0;
    snprintf(param, sizeof param, "%.32s.%.60s", name, inner.param);
    return err_set_param(err, inner.kind, param, "in '%s' %s", name, inner.text);
}

int params_wrong(struct err *err, const char *name, const char *must_be)
{
    return err_set_param(err, ERR_INVALID, name, "'%s' must be %s", name, must_be);
}

int params_text(const json_t *value, char **ret_text, size_t *ret_len)
{
    *ret_len = json_string_length(value);
    *ret_text = view_dup((struct view){json_string_value(value), *ret_len});
    return 0;
}

int params_ids(const char *name, const json_t *list, int32_t **ret_ids, size_t *ret_n,
               struct err *err)
{
    size_t i;
    json_t *item;

    *ret_ids = XNEW_ARRAY(int32_t, json_array_size(list));
    json_array_foreach(list, i, item)
    {
        if (!json_is_integer(item) || json_integer_value(item) < 0 ||
            json_integer_value(item) > INT32_MAX)
            return params_wrong(err, name, "a text or an array of token ids");
        (*ret_ids)[(*ret_n)++] = (int32_t)json_integer_value(item);
    }
    return 0;
}

/* -- shared fields -------------------------------------------------------------------- */

static int parse_model(struct parse *p, const char *name, const json_t *value, struct err *err)
{
    if (!json_is_string(value) || json_string_length(value) == 0)
        return params_wrong(err, name, "the name of a model");
    p->request->model = xstrdup(json_string_value(value));
    return 0;
}

static int parse_flag(const char *name, const json_t *value, bool *out, struct err *err)
{
    if (!json_is_boolean(value))
        return params_wrong(err, name, "true or false");
    *out = json_is_true(value);
    return 0;
}

static int parse_stream(struct parse *p, const char *name, const json_t *value, struct err *err)
{
    return parse_flag(name, value, &p->reply.stream, err);
}

static int parse_stream_options(struct parse *p, const char *name, const json_t *value,
                                struct err *err)
{
    static const char *const known[] = {"include_usage", "include_obfuscation", NULL};
    bool obfuscate = false;
    int r;

    if (!json_is_object(value))
        return params_wrong(err, name, "an object");
    r = params_only_keys(value, name, known, err);
    if (r >= 0)
        r = json_get_bool(value, "include_usage", &p->reply.include_usage, err);
    if (r >= 0)
        r = json_get_bool(value, "include_obfuscation", &obfuscate, err);
    if (r >= 0 && obfuscate)
        return err_set_param(
            err, ERR_INVALID, "stream_options.include_obfuscation",
            "'stream_options.include_obfuscation' cannot be honoured; leave it out");
    return r;
}

static int add_stop(struct request *q, const char *name, const json_t *value, struct err *err)
{
    if (!json_is_string(value) || json_string_length(value) == 0)
        return params_wrong(err, name, "a text that is not empty, or up to 16 of them");
    if (q->n_stops == REQUEST_MAX_STOPS)
        return params_wrong(err, name, "at most 16 texts");
    q->stop[q->n_stops].text =
        view_dup((struct view){json_string_value(value), json_string_length(value)});
    q->stop[q->n_stops++].len = json_string_length(value);
    return 0;
}

static int parse_stop(struct parse *p, const char *name, const json_t *value, struct err *err)
{
    size_t i;
    json_t *item;
    int r = 0;

    if (!json_is_array(value))
        return add_stop(p->request, name, value, err);
    json_array_foreach(value, i, item)
    {
        r = add_stop(p->request, name, item, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int parse_seed(struct parse *p, const char *name, const json_t *value, struct err *err)
{
    if (!json_is_integer(value))
        return params_wrong(err, name, "a whole number");
    p->request->sampling.seed = (uint64_t)json_integer_value(value);
    p->request->given |= 1u << SAMPLING_FIELD_seed;
    return 0;
}

static int parse_max_tokens(struct parse *p, const char *name, const json_t *value, struct err *err)
{
    bool old = strcmp(name, "max_tokens") == 0;

    if (!json_is_integer(value) || json_integer_value(value) < 1 ||
        json_integer_value(value) > INT32_MAX)
        return params_wrong(err, name, "a whole number from 1 to 2147483647");
    *(old ? &p->max_tokens : &p->max_completion_tokens) = json_integer_value(value);
    return 0;
}

static int parse_n(struct parse *p, const char *name, const json_t *value, struct err *err)
{
    if (!json_is_integer(value) || json_integer_value(value) < 1 || json_integer_value(value) > 16)
        return params_wrong(err, name, "a whole number from 1 to 16");
    p->request->n = (unsigned)json_integer_value(value);
    return 0;
}

static int parse_logit_bias(struct parse *p, const char *name, const json_t *value, struct err *err)
{
    struct sampling_options *s = &p->request->sampling;
    const char *key;
    json_t *item;

    if (!json_is_object(value))
        return params_wrong(err, name, "an object of token id to bias");
    s->bias = XNEW_ARRAY(struct sampling_bias, json_object_size(value));
    json_object_foreach((json_t *)(uintptr_t)value, key, item)
    {
        char *end;
        long id;
        double bias = json_number_value(item);

        errno = 0;
        id = strtol(key, &end, 10);
        if (errno || end == key || *end || id < 0 || id > INT32_MAX)
            return err_set_param(err, ERR_INVALID, name, "'%s': '%s' is no token id", name, key);
        if (!json_is_number(item) || !(bias >= -100 && bias <= 100))
            return err_set_param(err, ERR_INVALID, name,
                                 "'%s.%s' must be a number from -100 to 100", name, key);
        /* OpenAI's promise for -100 is that the token cannot come. */
        s->bias[s->n_bias++] =
            (struct sampling_bias){(int32_t)id, bias <= -100 ? -INFINITY : (float)bias};
    }
    return 0;
}

static int parse_mirostat(struct parse *p, const char *name, const json_t *value, struct err *err)
{
    if (!json_is_integer(value) ||
        (json_integer_value(value) != 0 && json_integer_value(value) != 2))
        return params_wrong(err, name, "0 or 2");
    p->request->sampling.mirostat = (int32_t)json_integer_value(value);
    return 0;
}

static int parse_dry_breakers(struct parse *p, const char *name, const json_t *value,
                              struct err *err)
{
    struct sampling_options *s = &p->request->sampling;
    size_t i;
    json_t *item;

    if (!json_is_array(value) || json_array_size(value) > SAMPLING_MAX_DRY_BREAKERS)
        return params_wrong(err, name, "an array of at most 16 texts");
    json_array_foreach(value, i, item)
    {
        if (!json_is_string(item) || json_string_length(item) == 0)
            return params_wrong(err, name, "an array of texts that are not empty");
        s->dry_breakers[s->n_dry_breakers++] = xstrdup(json_string_value(item));
    }
    return 0;
}

/* "10m", seconds as a number, negative: stays, 0: leaves at once. */
static int parse_keep_alive(struct parse *p, const char *name, const json_t *value, struct err *err)
{
    int64_t ms = 0;

    if (json_is_string(value)) {
        struct err inner;

        if (units_parse_time_ms(json_string_value(value), &ms, &inner) < 0)
            return err_set_param(err, ERR_INVALID, name, "'%s': %s", name, inner.text);
    } else if (json_is_number(value) && fabs(json_number_value(value)) < 1e12) {
        ms = (int64_t)(json_number_value(value) * 1000);
    } else {
        return params_wrong(err, name, "a time such as \"10m\", or a number of seconds");
    }
    p->request->keep_alive_ms = ms < 0 ? -1 : ms;
    return 0;
}

static int parse_progress(struct parse *p, const char *name, const json_t *value, struct err *err)
{
    return parse_flag(name, value, &p->request->return_progress, err);
}

static int parse_ignore_eos(struct parse *p, const char *name, const json_t *value, struct err *err)
{
    return parse_flag(name, value, &p->request->ignore_eos, err);
}

static int parse_label(struct parse *p, const char *name, const json_t *value, struct err *err)
{
    (void)p;
    return json_is_string(value) ? 0 : params_wrong(err, name, "a text");
}

static int parse_grammar(struct parse *p, const char *name, const json_t *value, struct err *err)
{
    (void)p;
    if (json_is_string(value) && json_string_length(value) == 0)
        return 0;
    return err_set_param(err, ERR_UNPROCESSABLE, name,
                         "'%s' cannot be enforced by this version; leave it out", name);
}

static const struct field shared[] = {
    {"model", FACE_ALL, parse_model},
    {"stream", FACE_BOTH, parse_stream},
    {"stream_options", FACE_BOTH, parse_stream_options},
    {"stop", FACE_BOTH, parse_stop},
    {"seed", FACE_BOTH, parse_seed},
    {"max_tokens", FACE_BOTH, parse_max_tokens},
    {"max_completion_tokens", FACE_CHAT, parse_max_tokens},
    {"n", FACE_BOTH, parse_n},
    {"logit_bias", FACE_BOTH, parse_logit_bias},
    {"mirostat", FACE_BOTH, parse_mirostat},
    {"dry_sequence_breakers", FACE_BOTH, parse_dry_breakers},
    {"keep_alive", FACE_ALL, parse_keep_alive},
    {"return_progress", FACE_BOTH, parse_progress},
    {"ignore_eos", FACE_BOTH, parse_ignore_eos},
    {"grammar", FACE_BOTH, parse_grammar},
    {"user", FACE_ALL, parse_label},
    {"safety_identifier", FACE_CHAT, parse_label},
    {"prompt_cache_key", FACE_CHAT, parse_label},
};

/* -- the whole body --------------------------------------------------------------------------- */

/* Only who generates has the numbers of sampling. */
static bool samples(const struct parse *p)
{
    return p->face & FACE_BOTH;
}

static int check_known(const struct parse *p, const json_t *body, const struct field *own,
                       size_t n_own, struct err *err)
{
    const char **known =
        XNEW_ARRAY(const char *, request_number_names(NULL) + ARRAY_LEN(shared) + n_own + 1);
    size_t n = 0;
    int r;

    for (size_t i = 0; i < ARRAY_LEN(shared); i++)
        if (shared[i].faces & p->face)
            known[n++] = shared[i].name;
    for (size_t i = 0; i < n_own; i++)
        known[n++] = own[i].name;
    if (samples(p))
        request_number_names(known + n);
    r = json_only_keys(body, known, err);
    free(known);
    return r;
}

static int parse_fields(struct parse *p, const json_t *body, const struct field *fields, size_t n,
                        struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        const json_t *value = json_object_get(body, fields[i].name);
        int r;

        if (!(fields[i].faces & p->face) || !value || json_is_null(value))
            continue;
        r = fields[i].parse(p, fields[i].name, value, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int settle_max_tokens(struct parse *p, struct err *err)
{
    if (p->max_tokens >= 0 && p->max_completion_tokens >= 0 &&
        p->max_tokens != p->max_completion_tokens)
        return err_set_param(err, ERR_INVALID, "max_tokens",
                             "'max_tokens' and 'max_completion_tokens' differ; send one of them");
    p->request->max_tokens = MAX(p->max_tokens, p->max_completion_tokens);
    return 0;
}

/* JSON carries integers up to 2^53 faithfully everywhere: a seed that is reported must be one that can be sent. */
static uint64_t random_seed(void)
{
    uint64_t seed;

    if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
        seed = (uint64_t)clock_us();
    return seed & (((uint64_t)1 << 53) - 1);
}

int params_parse(struct parse *p, const json_t *body, const struct field *own, size_t n_own,
                 struct err *err)
{
    int r;

    p->max_tokens = p->max_completion_tokens = -1;
    if (!json_is_object(body))
        return err_set(err, ERR_INVALID, "the body must be a JSON object");
    r = check_known(p, body, own, n_own, err);
    if (r >= 0 && samples(p))
        r = request_read_numbers(p->request, body, err);
    if (r >= 0)
        r = parse_fields(p, body, shared, ARRAY_LEN(shared), err);
    if (r >= 0)
        r = parse_fields(p, body, own, n_own, err);
    if (r >= 0)
        r = settle_max_tokens(p, err);
    if (r >= 0 && !(p->request->given & 1u << SAMPLING_FIELD_seed))
        p->request->sampling.seed = random_seed();
    return r;
}
