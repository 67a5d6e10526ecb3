/* Reads the vocabulary and the flags of a file; answers questions about tokens.  See tokenizer.h. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "daemon/tokenizer/tokenizer_priv.h"

#define KEY(name) "tokenizer.ggml." name

/* The array under key, of n elements, or NULL when it is absent. */
static int read_array(const struct gguf *g, const char *key, size_t n, bool strings,
                      const struct gguf_value **ret, struct err *err)
{
    const struct gguf_value *v = gguf_find(g, key);

    *ret = v;
    if (!v)
        return 0;
    if (v->type != GGUF_ARRAY || (v->elem_type == GGUF_STRING) != strings ||
        v->elem_type == GGUF_BOOL)
        return err_set_param(err, ERR_FORMAT, key, "metadata key '%s' is not an array of %s", key,
                             strings ? "strings" : "numbers");
    if (n && v->n != n)
        return err_set_param(err, ERR_FORMAT, key,
                             "metadata key '%s' has %zu elements for %zu tokens", key, v->n, n);
    return 1;
}

static int read_texts(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    const struct gguf_value *tokens;
    struct str bytes = {0};
    size_t sum = 0;
    int r = read_array(g, KEY("tokens"), 0, true, &tokens, err);

    if (r < 0)
        return r;
    if (r == 0 || tokens->n == 0)
        return err_set_param(err, ERR_FORMAT, KEY("tokens"),
                             "the file has a tokenizer but no tokens (" KEY("tokens") ")");
    if (tokens->n > INT32_MAX / 4)
        return err_set(err, ERR_UNSUPPORTED, "a vocabulary of %zu tokens is too large", tokens->n);
    t->n_vocab = tokens->n;
    for (size_t i = 0; i < tokens->n; i++)
        sum += tokens->strings[i].len;
    texts_init(&t->texts, t->n_vocab, sum);
    for (size_t i = 0; r > 0 && i < tokens->n; i++) {
        struct view text = tokens->strings[i];

        if (t->kind == KIND_RWKV && !rwkv_unescape(text, &bytes)) {
            r = err_set_param(err, ERR_FORMAT, KEY("tokens"),
                              "token %zu has an escape that means no byte", i);
            break;
        }
        if (t->kind == KIND_RWKV)
            text = view_of_str(&bytes);
        t->max_token_len = MAX(t->max_token_len, text.len);
        /* An empty text stands for nothing and is never found. */
        if (text.len == 0)
            texts_add_hidden(&t->texts, text);
        else if (!texts_add(&t->texts, text))
            r = err_set_param(err, ERR_FORMAT, KEY("tokens"),
                              "tokens %" PRId32 " and %zu have the same text",
                              texts_find(&t->texts, text), i);
    }
    str_clear(&bytes);
    return r < 0 ? r : 0;
}

static int read_scores(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    const struct gguf_value *scores;
    int r = read_array(g, KEY("scores"), t->n_vocab, false, &scores, err);

    if (r <= 0)
        return r;
    t->scores = XNEW_ARRAY(float, t->n_vocab);
    for (size_t i = 0; i < t->n_vocab; i++) {
        t->scores[i] = (float)gguf_elem_f64(scores, i);
        if (isnan(t->scores[i]))
            return err_set_param(err, ERR_FORMAT, KEY("scores"),
                                 "the score of token %zu is not a number", i);
    }
    return 0;
}

static int read_types(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    static const uint16_t attrs[] = {
        [0] = ATTR_NORMAL, /* "undefined" */
        [TOKEN_NORMAL] = ATTR_NORMAL,
        [TOKEN_UNKNOWN] = ATTR_UNKNOWN,
        [TOKEN_CONTROL] = ATTR_CONTROL,
        [TOKEN_USER_DEFINED] = ATTR_USER_DEFINED,
        [TOKEN_UNUSED] = ATTR_UNUSED,
        [TOKEN_BYTE] = ATTR_BYTE,
    };
    const struct gguf_value *types;
    int r = read_array(g, KEY("token_type"), t->n_vocab, false, &types, err);

    if (r < 0)
        return r;
    if (r > 0 && !gguf_is_int(types->elem_type))
        return err_set_param(err, ERR_FORMAT, KEY("token_type"),
                             "metadata key '" KEY("token_type") "' is not an array of integers");
    t->attrs = XNEW_ARRAY(uint16_t, t->n_vocab);
    for (size_t i = 0; i < t->n_vocab; i++) {
        int64_t type = r > 0 ? gguf_elem_i64(types, i) : TOKEN_NORMAL;

        if (type < 0 || type >= (int64_t)ARRAY_LEN(attrs))
            return err_set_param(err, ERR_FORMAT, KEY("token_type"),
                                 "token %zu is of type %" PRId64 "; there are types 0 to %zu", i,
                                 type, ARRAY_LEN(attrs) - 1);
        t->attrs[i] = attrs[type];
    }
    return 0;
}

int vocab_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int vocab_byte_of(struct view text)
{
    int high, low;

    if (text.len != 6 || memcmp(text.p, "<0x", 3) != 0 || text.p[5] != '>')
        return -1;
    high = vocab_hex_digit(text.p[3]);
    low = vocab_hex_digit(text.p[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

static void find_byte_tokens(struct tokenizer *t)
{
    for (unsigned b = 0; b < 256; b++) {
        char text[8], raw = (char)b;

        snprintf(text, sizeof text, "<0x%02X>", b);
        t->byte_token[b] = texts_find(&t->texts, view_of(text));
        /* Old SentencePiece files have the byte itself. */
        if (t->byte_token[b] < 0 && t->kind == KIND_SPM)
            t->byte_token[b] = texts_find(&t->texts, (struct view){&raw, 1});
    }
}

int vocab_read(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    int r;

    if ((r = read_texts(t, g, err)) < 0 || (r = read_scores(t, g, err)) < 0 ||
        (r = read_types(t, g, err)) < 0)
        return r;
    find_byte_tokens(t);
    return 0;
}

/* An id under key; absent leaves *id. */
static int read_id(const struct tokenizer *t, const struct gguf *g, const char *key, int32_t *id,
                   struct err *err)
{
    uint32_t value;
    int r = gguf_get_u32(g, key, 0, (uint32_t)t->n_vocab - 1, &value, err);

    if (r > 0)
        *id = (int32_t)value;
    return r;
}

/* Tokens that end a turn or a text, known by their text because files do not say it. */
static const char *const eog_texts[] = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<end_of_utterance>",
    "[e~[",
    "<｜end▁of▁sentence｜>",
};

/* Fill-in-the-middle marks: the last three kinds also end a generation. */
static const struct {
    const char *key, *old_key;
    bool ends;
    const char *texts[8];
} fim_marks[] = {
    {KEY("fim_pre_token_id"),
     KEY("prefix_token_id"),
     false,
     {"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>",
      "<|code_prefix|>", "<|prefix|>"}},
    {KEY("fim_suf_token_id"),
     KEY("suffix_token_id"),
     false,
     {"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>",
      "<|code_suffix|>", "<|suffix|>"}},
    {KEY("fim_mid_token_id"),
     KEY("middle_token_id"),
     false,
     {"<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>",
      "<|code_middle|>", "<|middle|>"}},
    {KEY("fim_pad_token_id"),
     NULL,
     true,
     {"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"}},
    {KEY("fim_rep_token_id"),
     NULL,
     true,
     {"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"}},
    {KEY("fim_sep_token_id"), NULL, true, {"<|file_sep|>"}},
};

static int read_fim(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(fim_marks); i++) {
        int32_t id = -1;
        int r = read_id(t, g, fim_marks[i].key, &id, err);

        if (r == 0 && fim_marks[i].old_key)
            r = read_id(t, g, fim_marks[i].old_key, &id, err);
        if (r < 0)
            return r;
        for (size_t k = 0; id < 0 && k < 8 && fim_marks[i].texts[k]; k++) {
            id = texts_find(&t->texts, view_of(fim_marks[i].texts[k]));
            if (id >= 0)
                t->attrs[id] |= ATTR_CONTROL;
        }
        if (id >= 0 && fim_marks[i].ends)
            t->attrs[id] |= ATTR_EOG;
    }
    return 0;
}

static int32_t find_eog(const struct tokenizer *t, const char *text)
{
    int32_t id = tokenizer_find(t, view_of(text));

    return id >= 0 && (t->attrs[id] & ATTR_EOG) ? id : -1;
}

static void find_eog_texts(struct tokenizer *t)
{
    /* Frames of a harmony conversation: the text between them is what makes sense of the rest. */
    static const char *const frames[] = {"<|channel|>", "<|message|>", "<|start|>",
                                         "<|constrain|>"};
    int32_t end, s;

    for (size_t i = 0; i < ARRAY_LEN(eog_texts); i++) {
        int32_t id = texts_find(&t->texts, view_of(eog_texts[i]));

        if (id >= 0)
            t->attrs[id] |= ATTR_EOG | ATTR_CONTROL;
    }
    for (size_t i = 0; i < ARRAY_LEN(frames); i++) {
        int32_t id = texts_find(&t->texts, view_of(frames[i]));

        if (id >= 0)
            t->attrs[id] |= ATTR_SHOWN | ATTR_CONTROL;
    }
    /* Where a turn ends with <|return|> or <|call|>, <|end|> only ends a part of it. */
    end = find_eog(t, "<|end|>");
    if (end >= 0 && ((find_eog(t, "<|return|>") >= 0 &&
                      (find_eog(t, "<|call|>") >= 0 || find_eog(t, "<|calls|>") >= 0)) ||
                     (find_eog(t, "<|flush|>") >= 0 &&
                      (find_eog(t, "<|call|>") >= 0 || find_eog(t, "<|calls|>") >= 0))))
        t->attrs[end] = (uint16_t)((t->attrs[end] & ~ATTR_EOG) | ATTR_SHOWN);
    /* Gemma 4 has "</s>" as a word of HTML. */
    s = find_eog(t, "</s>");
    if (s >= 0 && find_eog(t, "<|tool_response>") >= 0 && s != t->eos)
        t->attrs[s] = ATTR_NORMAL;
}

static int read_flags(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    int r;

    if ((r = gguf_get_bool(g, KEY("add_bos_token"), &t->add_bos, err)) < 0 ||
        (r = gguf_get_bool(g, KEY("add_eos_token"), &t->add_eos, err)) < 0 ||
        (r = gguf_get_bool(g, KEY("add_space_prefix"), &t->add_space_prefix, err)) < 0)
        return r;
    /* Files of this family were made with the flag unset although the model needs it. */
    if (t->pre && (t->pre->flags & PRE_NEWLINES_WHOLE))
        t->add_bos = true;
    return 0;
}

int vocab_read_specials(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    int32_t eot = -1, eom = -1;
    int r;

    if ((r = read_id(t, g, KEY("cls_token_id"), &t->bos, err)) < 0 ||
        (r = read_id(t, g, KEY("bos_token_id"), &t->bos, err)) < 0 ||
        (r = read_id(t, g, KEY("eos_token_id"), &t->eos, err)) < 0 ||
        (r = read_id(t, g, KEY("unknown_token_id"), &t->unk, err)) < 0 ||
        (r = read_id(t, g, KEY("seperator_token_id"), &t->sep, err)) < 0 ||
        (r = read_id(t, g, KEY("eot_token_id"), &eot, err)) < 0 ||
        (r = read_id(t, g, KEY("eom_token_id"), &eom, err)) < 0 ||
        (r = read_flags(t, g, err)) < 0 || (r = read_fim(t, g, err)) < 0)
        return r;
    t->add_bos = t->add_bos && t->bos >= 0;
    t->add_eos = t->add_eos && t->eos >= 0;
    find_eog_texts(t);
    if (t->eos >= 0)
        t->attrs[t->eos] |= ATTR_EOG;
    if (eot >= 0)
        t->attrs[eot] |= ATTR_EOG;
    if (eom >= 0)
        t->attrs[eom] |= ATTR_EOG;
    return 0;
}

static bool contains_nocase(struct view text, const char *word)
{
    size_t n = strlen(word);

    for (size_t i = 0; i + n <= text.len; i++)
        if (strncasecmp(text.p + i, word, n) == 0)
            return true;
    return false;
}

static void set_attr(struct tokenizer *t, const char *text, uint16_t attr, bool on)
{
    int32_t id = texts_find(&t->texts, view_of(text));

    if (id >= 0)
        t->attrs[id] = (uint16_t)(on ? t->attrs[id] | attr : t->attrs[id] & ~attr);
}

/* White space round special tokens: not in the file, so known by the model's name. */
void vocab_set_attributes(struct tokenizer *t, const struct gguf *g, const char *pre)
{
    const uint16_t special = ATTR_CONTROL | ATTR_USER_DEFINED | ATTR_UNKNOWN;
    const struct gguf_value *v = gguf_find(g, "general.name");
    struct view name = v && v->type == GGUF_STRING ? v->strings[0] : (struct view){"", 0};
    struct view arch;

    v = gguf_find(g, "general.architecture");
    arch = v && v->type == GGUF_STRING ? v->strings[0] : (struct view){"", 0};
    if (strncmp(pre, "jina-v2-", 8) == 0 || view_is(arch, "nomic-bert-moe") ||
        view_is(arch, "jina-bert-v3")) {
        set_attr(t, "<mask>", ATTR_LSTRIP, true);
    } else if (contains_nocase(name, "phi-3") || contains_nocase(name, "phi3")) {
        for (size_t i = 0; i < t->n_vocab; i++)
            if (t->attrs[i] & special)
                t->attrs[i] |= ATTR_RSTRIP;
        set_attr(t, "</s>", ATTR_RSTRIP, true);
        set_attr(t, "<unk>", ATTR_RSTRIP, false);
        set_attr(t, "<s>", ATTR_RSTRIP, false);
        set_attr(t, "<|endoftext|>", ATTR_RSTRIP, false);
    } else if (contains_nocase(name, "modern-bert")) {
        set_attr(t, "[MASK]", ATTR_LSTRIP, true);
    }
}

size_t tokenizer_n_vocab(const struct tokenizer *t)
{
    return t->n_vocab;
}

int32_t tokenizer_bos(const struct tokenizer *t)
{
    return t->bos;
}

int32_t tokenizer_eos(const struct tokenizer *t)
{
    return t->eos;
}

bool tokenizer_add_bos(const struct tokenizer *t)
{
    return t->add_bos;
}

bool tokenizer_add_eos(const struct tokenizer *t)
{
    return t->add_eos;
}

static bool is_id(const struct tokenizer *t, int32_t id)
{
    return id >= 0 && (size_t)id < t->n_vocab;
}

bool tokenizer_is_eog(const struct tokenizer *t, int32_t id)
{
    return is_id(t, id) && (t->attrs[id] & ATTR_EOG);
}

enum token_type tokenizer_type(const struct tokenizer *t, int32_t id)
{
    unsigned a = is_id(t, id) ? t->attrs[id] : ATTR_UNKNOWN;

    if (a & ATTR_CONTROL)
        return TOKEN_CONTROL;
    if (a & ATTR_USER_DEFINED)
        return TOKEN_USER_DEFINED;
    if (a & ATTR_UNKNOWN)
        return TOKEN_UNKNOWN;
    if (a & ATTR_BYTE)
        return TOKEN_BYTE;
    return a & ATTR_UNUSED ? TOKEN_UNUSED : TOKEN_NORMAL;
}

struct view tokenizer_text(const struct tokenizer *t, int32_t id)
{
    return is_id(t, id) ? texts_at(&t->texts, (size_t)id) : (struct view){"", 0};
}

int32_t tokenizer_find(const struct tokenizer *t, struct view text)
{
    int32_t id = texts_find(&t->texts, text);

    return is_id(t, id) ? id : -1;
}
