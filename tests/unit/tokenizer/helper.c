/* Small vocabularies for the tests of this room; see helper.h. */
#include "tests/unit/tokenizer/helper.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/alloc.h"
#include "daemon/tokenizer/tokenizer_priv.h"

void write_tokens(struct gguf_writer *w, const char *model, const struct token *tokens, size_t n)
{
    const char **texts = XNEW_ARRAY(const char *, n + 1);
    float *scores = XNEW_ARRAY(float, n + 1);
    int32_t *types = XNEW_ARRAY(int32_t, n + 1);

    for (size_t i = 0; i < n; i++) {
        texts[i] = tokens[i].text;
        scores[i] = tokens[i].score;
        types[i] = tokens[i].type ? tokens[i].type : TOKEN_NORMAL;
    }
    gguf_writer_string(w, "tokenizer.ggml.model", model);
    gguf_writer_strings(w, "tokenizer.ggml.tokens", texts, n);
    gguf_writer_array(w, "tokenizer.ggml.scores", GGUF_F32, scores, n);
    gguf_writer_array(w, "tokenizer.ggml.token_type", GGUF_I32, types, n);
    free(texts);
    free(scores);
    free(types);
}

void write_bpe(struct gguf_writer *w, const char *pre, const struct token *more, size_t n,
               const char *const *merges, size_t n_merges)
{
    struct token *tokens = XNEW_ARRAY(struct token, 256 + n);
    char bytes[256][5] = {{0}};

    for (unsigned b = 0; b < 256; b++) {
        struct str s = {0};

        str_add_utf8(&s, bpe_char_of_byte(b));
        snprintf(bytes[b], sizeof bytes[b], "%s", str_text(&s));
        str_clear(&s);
        tokens[b].text = bytes[b];
    }
    for (size_t i = 0; i < n; i++)
        tokens[256 + i] = more[i];
    write_tokens(w, "gpt2", tokens, 256 + n);
    if (pre)
        gguf_writer_string(w, "tokenizer.ggml.pre", pre);
    gguf_writer_strings(w, "tokenizer.ggml.merges", merges, n_merges);
    free(tokens);
}

void write_spm(struct gguf_writer *w, const struct token *more, size_t n)
{
    struct token *tokens = XNEW_ARRAY(struct token, 259 + n);
    char bytes[256][8];

    tokens[0] = (struct token){"<unk>", 0, TOKEN_UNKNOWN};
    tokens[1] = (struct token){"<s>", 0, TOKEN_CONTROL};
    tokens[2] = (struct token){"</s>", 0, TOKEN_CONTROL};
    for (unsigned b = 0; b < 256; b++) {
        snprintf(bytes[b], sizeof bytes[b], "<0x%02X>", b);
        tokens[3 + b] = (struct token){bytes[b], 0, TOKEN_BYTE};
    }
    for (size_t i = 0; i < n; i++)
        tokens[259 + i] = more[i];
    write_tokens(w, "llama", tokens, 259 + n);
    free(tokens);
}

static int count(void *arg, size_t bytes, struct err *err)
{
    size_t *asked = arg;

    (void)err;
    *asked += bytes;
    return 0;
}

/* Whatever file it is, room was asked for what it takes. */
static int create(struct gguf_writer *w, struct tokenizer **ret, struct err *err)
{
    int fd = gguf_writer_memfd(w);
    char *path = gguf_writer_fd_path(fd);
    size_t asked = 0;
    const struct gguf_room room = {count, &asked};
    struct gguf *g = NULL;
    int r = gguf_open_within(path, &room, &g, err);

    ck_assert_msg(r == 0, "the file is refused: %s", err->text);
    ck_assert_uint_ge(asked + 4096, gguf_memory_bytes(g)); /* but for struct gguf */
    asked = 0;
    r = tokenizer_create_within(g, &room, ret, err);
    if (r == 0 && *ret)
        ck_assert_uint_ge(asked, tokenizer_memory_bytes(*ret));
    gguf_close(g);
    free(path);
    close(fd);
    gguf_writer_clear(w);
    return r;
}

struct tokenizer *make_tokenizer(struct gguf_writer *take_w)
{
    struct tokenizer *t = NULL;
    struct err err = {0};

    ck_assert_msg(create(take_w, &t, &err) == 0, "refused: %s", err.text);
    return t;
}

void expect_no_tokenizer(struct gguf_writer *take_w, enum err_kind kind, const char *part)
{
    struct tokenizer *t = NULL;
    struct err err = {0};
    int r = create(take_w, &t, &err);

    ck_assert_msg(r == -(int)kind, "%s instead of %s: %s", r ? err_name(r) : "made",
                  err_name((int)kind), err.text);
    ck_assert_msg(strstr(err.text, part) != NULL, "'%s' is not in: %s", part, err.text);
    ck_assert_ptr_null(t);
}

void expect_ids(const struct tokenizer *t, struct view text, bool add_special, bool parse_special,
                const char *want)
{
    struct token_list ids = {0};
    struct str got = {0};
    struct err err = {0};

    ck_assert_msg(tokenizer_encode(t, text, add_special, parse_special, &ids, &err) == 0, "%s",
                  err.text);
    for (size_t i = 0; i < ids.n; i++)
        str_addf(&got, "%s%d", i ? " " : "", (int)ids.ids[i]);
    ck_assert_str_eq(str_text(&got), want);
    token_list_clear(&ids);
    str_clear(&got);
}

int32_t *parse_ids(const char *text, size_t *ret_n)
{
    int32_t *ids = NULL;
    size_t n = 0, cap = 0;

    for (char *end;; text = end) {
        long id = strtol(text, &end, 10);

        if (end == text)
            break;
        ARRAY_GROW(ids, n + 1, cap);
        ids[n++] = (int32_t)id;
    }
    *ret_n = n;
    return ids;
}

void expect_text(const struct tokenizer *t, const char *ids, bool remove_special, bool show_special,
                 const char *want)
{
    size_t n;
    int32_t *list = parse_ids(ids, &n);
    struct str got = {0};

    tokenizer_decode(t, list, n, remove_special, show_special, &got);
    ck_assert_str_eq(str_text(&got), want);
    str_clear(&got);
    free(list);
}

char *repeat(const char *text, size_t n)
{
    struct str s = {0};

    for (size_t i = 0; i < n; i++)
        str_adds(&s, text);
    return str_take(&s);
}
