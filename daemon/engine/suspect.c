/* What is odd about a model file; see suspect.h. */
#include <stdarg.h>
#include <string.h>

#include "common/alloc.h"
#include "common/json.h"
#include "daemon/chat/chat.h"
#include "daemon/engine/suspect.h"

/* A marker longer than this is text, not a token's name. */
#define MARKER_MAX 40

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

/* Was the marker at p told of before? */
static bool seen_before(const char *text, const char *p, size_t n)
{
    for (const char *q = text; q < p; q++)
        if (strncmp(q, p, n) == 0)
            return true;
    return false;
}

/* A marker that is no token is spelled out in pieces, which the model was not trained on. */
static void check_markers(const char *text, const struct tokenizer *tok, json_t *list)
{
    for (const char *p = strchr(text, '<'); p; p = strchr(p + 1, '<')) {
        size_t n = marker_length(p);

        if (n && tokenizer_find(tok, (struct view){p, n}) < 0 && !seen_before(text, p, n))
            say(list, "the chat template writes '%.*s', which is no token of the vocabulary",
                (int)n, p);
    }
}

static void check_template(const struct model_info *info, const struct tokenizer *tok, json_t *list)
{
    struct chat_template *t = NULL;
    struct err err;

    if (!info->chat_template) {
        say(list, "there is no chat template: conversations are written as ChatML, which the model "
                  "may not know");
        return;
    }
    if (chat_template_create(info->chat_template, strlen(info->chat_template), &t, &err) < 0)
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

json_t *suspect_list(const struct model *m)
{
    const struct tokenizer *tok = model_tokenizer(m);
    json_t *list = json_array();
    struct model_info info;

    model_info(m, &info);
    if (tok) {
        check_tokens(&info, tok, list);
        if (!info.pooling) /* what gives embeddings has no conversations */
            check_template(&info, tok, list);
    } else {
        say(list, "there is no vocabulary: the model takes token ids only");
    }
    model_unused_keys(m, unused_key, list);
    return list;
}
