/* What is odd about a model file; see suspect.h. */
#include <stdarg.h>
#include <string.h>

#include "common/alloc.h"
#include "common/json.h"
#include "daemon/chat/chat.h"
#include "daemon/engine/parse.h"
#include "daemon/engine/suspect.h"

/* A marker longer than this is text, not a token's name. */
#define MARKER_MAX 40
/* With so many it has been said that the template is another model's. */
#define MARKERS_TOLD 32

static void say(json_t *list, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void say(json_t *list, const char *fmt, ...)
{
    struct str s = {0};
    va_list ap;

    va_start(ap, fmt);
    str_vaddf(&s, fmt, ap);
    va_end(ap);
    json_array_append_new(list, json_text(str_text(&s), s.len));
    str_clear(&s);
}

static void unused_key(void *arg, struct view key)
{
    say(arg, "key '%.*s' is not read by rnbd", (int)MIN(key.len, 120), key.p);
}

/* Length of a marker "<|name|>" at p, 0 when there is none. */
static size_t marker_length(const char *p)
{
    size_t n = 2;

    if (p[0] != '<' || p[1] != '|')
        return 0;
    while (n < MARKER_MAX && p[n] && p[n] != '|' && p[n] != ' ' && p[n] != '<' && p[n] != '\'' &&
           p[n] != '"' && p[n] != '{')
        n++;
    return n > 2 && p[n] == '|' && p[n + 1] == '>' ? n + 2 : 0;
}

/* A marker that is no token is spelled out in pieces, which the model was not trained on. */
static void check_markers(const char *text, const struct tokenizer *tok, json_t *list)
{
    struct view told[MARKERS_TOLD];
    size_t n_told = 0, i;

    for (const char *p = strchr(text, '<'); p && n_told < MARKERS_TOLD; p = strchr(p + 1, '<')) {
        struct view marker = {p, marker_length(p)};

        if (!marker.len || tokenizer_find(tok, marker) >= 0)
            continue;
        for (i = 0; i < n_told && !view_eq(told[i], marker); i++)
            ;
        if (i < n_told)
            continue;
        told[n_told++] = marker;
        say(list, "the chat template writes '%.*s', which is no token of the vocabulary",
            (int)marker.len, p);
    }
}

static void check_template(const struct model_info *info, const struct tokenizer *tok,
                           const struct parse_room *room, json_t *list)
{
    struct chat_template *t = NULL;
    struct err err;
    int r;

    if (!info->chat_template) {
        say(list, "there is no chat template: conversations are written as ChatML, which the model "
                  "may not know");
        return;
    }
    r = parse_template_within(info->chat_template, room, &t, &err);
    if (r == -ERR_NOMEM)
        say(list, "the chat template was not looked at: %s", err.text);
    else if (r < 0)
        say(list, "the chat template is broken, so chats are refused: %s", err.text);
    chat_template_destroy(t);
    check_markers(info->chat_template, tok, list);
}

static void check_tokens(const struct model_info *info, const struct tokenizer *tok, json_t *list)
{
    size_t n = tokenizer_n_vocab(tok), n_ends = 0;

    for (size_t i = 0; i < n; i++)
        n_ends += tokenizer_is_eog(tok, (int32_t)i);
    if (!n_ends && !info->pooling)
        say(list, "no token ends an answer: only max_tokens and stop texts will");
    if (tokenizer_eos(tok) < 0 && !info->pooling)
        say(list, "the file names no end-of-text token (tokenizer.ggml.eos_token_id)");
    if (n != info->n_vocab)
        say(list, "the vocabulary has %zu tokens and the model %zu", n, info->n_vocab);
}

json_t *suspect_list(const struct model *m, const struct parse_room *room)
{
    const struct tokenizer *tok = model_tokenizer(m);
    json_t *list = json_array();
    struct model_info info;

    model_info(m, &info);
    if (tok) {
        check_tokens(&info, tok, list);
        if (!info.pooling) /* what gives embeddings has no conversations */
            check_template(&info, tok, room, list);
    } else {
        say(list, "there is no vocabulary: the model takes token ids only");
    }
    model_unused_keys(m, unused_key, list);
    return list;
}
