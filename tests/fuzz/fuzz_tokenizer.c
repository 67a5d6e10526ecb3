/* Texts to ids and back, and vocabularies from anywhere. */
/* room: daemon/tokenizer */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/alloc.h"
#include "common/utf8.h"
#include "daemon/tokenizer/tokenizer_priv.h"
#include "tests/fuzz/fuzz.h"

/*
 * The first byte of an input says what the rest is: for 0–15 a text for one of
 * the vocabularies made here, else a GGUF file with a vocabulary of its own.
 */
static const struct {
    const char *model, *pre;
} kinds[16] = {
    {"gpt2", "qwen2"},       {"gpt2", "llama-bpe"}, {"gpt2", "deepseek-llm"}, {"gpt2", "tekken"},
    {"gpt2", "gpt-4o"},      {"gpt2", "kimi-k2"},   {"gpt2", "afmoe"},        {"gpt2", "superbpe"},
    {"gpt2", "exaone-moe"},  {"gpt2", "chameleon"}, {"gpt2", "youtu"},        {"gpt2", "jais-2"},
    {"gpt2", "deepseek-v3"}, {"llama", NULL},       {"bert", NULL},           {"t5", NULL},
};

static void add_u32(struct str *s, uint32_t v)
{
    str_add(s, &v, sizeof v);
}

static void add_text(struct str *s, const char *text)
{
    uint64_t n = strlen(text);

    str_add(s, &n, sizeof n);
    str_add(s, text, n);
}

static void add_key(struct str *s, const char *key, uint32_t type)
{
    add_text(s, key);
    add_u32(s, type);
}

static void begin_array(struct str *s, const char *key, uint32_t type, uint64_t n)
{
    add_key(s, key, GGUF_ARRAY);
    add_u32(s, type);
    str_add(s, &n, sizeof n);
}

static const char *const words[] = {"▁",   "a",  "b",     "ab", "▁a", "Ġa", "<|s|>",
                                    "<u>", "aa", "[UNK]", "1",  "é",  "▁b", "aaaa"};
static const char *const merges[] = {"a a", "a b", "Ġ a", "aa aa", "Ã ©"};

static void add_tokens(struct str *s, bool bytes_as_chars)
{
    uint64_t n = 256 + ARRAY_LEN(words);

    begin_array(s, "tokenizer.ggml.tokens", GGUF_STRING, n);
    for (unsigned b = 0; b < 256; b++) {
        struct str text = {0};

        if (bytes_as_chars)
            str_add_utf8(&text, bpe_char_of_byte(b));
        else
            str_addf(&text, "<0x%02X>", b);
        add_text(s, str_text(&text));
        str_clear(&text);
    }
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        /* "a" and the like are bytes there already */
        bool twice = bytes_as_chars && (strlen(words[i]) == 1 || strcmp(words[i], "é") == 0);
        struct str text = {0};

        str_addf(&text, "%s%s", twice ? "~~" : "", words[i]);
        add_text(s, str_text(&text));
        str_clear(&text);
    }
    begin_array(s, "tokenizer.ggml.token_type", GGUF_U8, n);
    for (unsigned b = 0; b < 256; b++)
        str_addc(s, bytes_as_chars ? TOKEN_NORMAL : TOKEN_BYTE);
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        str_addc(s, words[i][0] == '<' ? (words[i][1] == 'u' ? TOKEN_USER_DEFINED : TOKEN_CONTROL)
                                       : TOKEN_NORMAL);
    begin_array(s, "tokenizer.ggml.scores", GGUF_I8, n);
    for (size_t i = 0; i < n; i++)
        str_addc(s, (char)-(int)(i % 7));
}

static void make_file(size_t kind, struct str *s)
{
    uint64_t counts[2] = {0, kinds[kind].pre ? 7 : 6};
    bool bpe = strcmp(kinds[kind].model, "gpt2") == 0;

    str_adds(s, "GGUF");
    add_u32(s, 3);
    str_add(s, counts, sizeof counts);
    add_key(s, "tokenizer.ggml.model", GGUF_STRING);
    add_text(s, kinds[kind].model);
    if (kinds[kind].pre) {
        add_key(s, "tokenizer.ggml.pre", GGUF_STRING);
        add_text(s, kinds[kind].pre);
    }
    add_tokens(s, bpe);
    begin_array(s, "tokenizer.ggml.merges", GGUF_STRING, ARRAY_LEN(merges));
    for (size_t i = 0; i < ARRAY_LEN(merges); i++)
        add_text(s, merges[i]);
    add_key(s, "tokenizer.ggml.add_space_prefix", GGUF_BOOL);
    str_addc(s, 0);
}

static int count(void *arg, size_t bytes, struct err *err)
{
    size_t *asked = arg;

    (void)err;
    *asked += bytes;
    return 0;
}

static int make(const void *bytes, size_t n, struct tokenizer **ret, struct err *err)
{
    static int fd = -1;
    char path[40];
    size_t asked = 0;
    const struct gguf_room room = {count, &asked};
    struct gguf *g;
    int r;

    if (fd < 0)
        fd = memfd_create("fuzz", MFD_CLOEXEC);
    FUZZ_REQUIRE(ftruncate(fd, 0) == 0 && pwrite(fd, bytes, n, 0) == (ssize_t)n);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    r = gguf_open(path, &g, err);
    if (r < 0)
        return r;
    r = tokenizer_create_within(g, &room, ret, err);
    FUZZ_REQUIRE(r < 0 || !*ret || tokenizer_memory_bytes(*ret) <= asked);
    gguf_close(g);
    return r;
}

/* Ids are of the vocabulary; of a text that nobody vouches for, none is a control token. */
static void check_ids(const struct tokenizer *t, const struct token_list *ids, bool trusted)
{
    for (size_t i = 0; i < ids->n; i++) {
        FUZZ_REQUIRE(ids->ids[i] >= 0 && (size_t)ids->ids[i] < tokenizer_n_vocab(t));
        FUZZ_REQUIRE(trusted || tokenizer_type(t, ids->ids[i]) != TOKEN_CONTROL ||
                     ids->ids[i] == t->unk);
    }
}

static bool any(const void *arg, struct view text)
{
    (void)arg;
    (void)text;
    return true;
}

static void stream(const struct tokenizer *t, const struct token_list *ids, struct str *out)
{
    struct detok d;

    detok_init(&d, t);
    d.shows = any;
    for (size_t i = 0; i < ids->n; i++)
        detok_feed(&d, ids->ids[i], out);
    FUZZ_REQUIRE(d.held.len < 4);
    detok_finish(&d, out);
    detok_clear(&d);
}

static void run_text(const struct tokenizer *t, struct view text, bool exact)
{
    struct token_span spans[2] = {{0, text.len / 3, true}, {text.len / 3, text.len, false}};
    struct token_list ids = {0};
    struct str back = {0};
    struct err err = {0};

    if (tokenizer_encode_spans(t, text, spans, 2, true, &ids, &err) < 0)
        FUZZ_REQUIRE(err.text[0]);
    else
        check_ids(t, &ids, true);
    ids.n = 0;
    if (tokenizer_encode(t, text, false, false, &ids, &err) == 0) {
        check_ids(t, &ids, false);
        stream(t, &ids, &back);
        if (exact && utf8_valid(text.p, text.len))
            FUZZ_REQUIRE(view_eq(view_of_str(&back), text));
        str_truncate(&back, 0);
        tokenizer_decode(t, ids.ids, ids.n, true, false, &back);
    }
    str_clear(&back);
    token_list_clear(&ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct tokenizer *made[ARRAY_LEN(kinds)];
    struct view rest = {(const char *)data + 1, size - 1};
    struct tokenizer *t = NULL;
    struct err err = {0};
    size_t kind;

    if (size == 0)
        return 0;
    kind = data[0];
    if (kind < ARRAY_LEN(kinds)) {
        struct str file = {0};

        make_file(kind, &file);
        if (!made[kind])
            FUZZ_REQUIRE(make(file.p, file.len, &made[kind], &err) == 0);
        str_clear(&file);
        /* Byte-level vocabularies with all bytes lose nothing. */
        run_text(made[kind], rest, kinds[kind].pre != NULL);
        return 0;
    }
    if (make(rest.p, rest.len, &t, &err) < 0) {
        FUZZ_REQUIRE(!t && err.text[0]);
        return 0;
    }
    if (!t)
        return 0;
    run_text(t, VIEW("Hello, <|im_start|> w\xc3\xb6rld 123  \n\xff!"), false);
    tokenizer_destroy(t);
    return 0;
}
