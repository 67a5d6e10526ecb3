/* Room is asked for before it is taken, whatever the vocabulary: the heap is never ahead of what was asked. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/alloc.h"
#include "daemon/tokenizer/tokenizer_priv.h"
#include "tests/support/heap.h"
#include "tests/unit/tokenizer/helper.h"

TCase *tcase_tokenizer_room(void);

#define LONG ((size_t)6 << 20)

static char *letters(char c, size_t n)
{
    char *text = xmalloc(n + 1);

    memset(text, c, n);
    text[n] = '\0';
    return text;
}

/*
 * Both parts are tokens, so that nothing is asked for until the whole has been put together; it is
 * just longer than a growing array has room for, which then has half as much again.
 */
static void a_long_merge(struct gguf_writer *w)
{
    size_t len = 8;
    char *text, *left, *right;

    while (len < LONG)
        len += len / 2 + 1;
    text = letters('a', len + 1);
    left = letters('a', len / 2);
    right = letters('b', len - len / 2);
    memset(text + len / 2 + 1, 'b', len - len / 2);
    text[len / 2] = ' ';
    write_bpe(w, "gpt-2", (const struct token[]){{left, 0, 0}, {right, 0, 0}}, 2,
              (const char *const[]){text}, 1);
    free(text);
    free(left);
    free(right);
}

static void a_long_merge_of_what_is_no_token(struct gguf_writer *w)
{
    char *text = letters('a', LONG);
    const char *merges[] = {text, "b cc"};

    text[LONG / 2] = ' ';
    write_bpe(w, "gpt-2", NULL, 0, merges, ARRAY_LEN(merges));
    free(text);
}

static void many_merges(struct gguf_writer *w)
{
    enum { N = 100000 };
    char(*texts)[32] = xcalloc(N, sizeof *texts);
    const char **merges = XNEW_ARRAY(const char *, N);

    for (int i = 0; i < N; i++) {
        snprintf(texts[i], sizeof texts[i], "l%d r%d", i, i);
        merges[i] = texts[i];
    }
    write_bpe(w, "gpt-2", NULL, 0, merges, N);
    free(merges);
    free(texts);
}

static void a_long_token(struct gguf_writer *w)
{
    char *text = letters('t', LONG);
    const struct token more[] = {{text, 0, TOKEN_CONTROL}, {"tt", 0, 0}};

    write_spm(w, more, ARRAY_LEN(more));
    free(text);
}

/* Every byte but the first is an escape, or none is: the bytes that they mean are made in a place of their own. */
static void a_long_token_with_escapes(struct gguf_writer *w)
{
    char *text = letters('r', LONG);
    const struct token more[] = {{"<unk>", 0, TOKEN_UNKNOWN}, {text, 0, 0}, {"rr", 0, 0}};

    write_tokens(w, "rwkv", more, ARRAY_LEN(more));
    gguf_writer_u32(w, "tokenizer.ggml.unknown_token_id", 0);
    free(text);
}

/* All of them are in every list that there is. */
static void many_tokens(struct gguf_writer *w)
{
    enum { N = 200001 };
    char(*texts)[16] = xcalloc(N, sizeof *texts);
    struct token *tokens = XNEW_ARRAY(struct token, N);

    for (int i = 0; i < N; i++) {
        snprintf(texts[i], sizeof texts[i], "t%d", i);
        tokens[i] = (struct token){texts[i], 0, i == 2 ? TOKEN_UNKNOWN : TOKEN_USER_DEFINED};
    }
    write_tokens(w, "t5", tokens, N);
    free(tokens);
    free(texts);
}

static void a_long_charsmap(struct gguf_writer *w)
{
    const struct token tokens[] = {
        {"<pad>", 0, TOKEN_CONTROL}, {"</s>", 0, TOKEN_CONTROL}, {"<unk>", 0, TOKEN_UNKNOWN}};
    char *bytes = xcalloc(LONG, 1);

    bytes[0] = 4;
    write_tokens(w, "t5", tokens, ARRAY_LEN(tokens));
    gguf_writer_array(w, "tokenizer.ggml.precompiled_charsmap", GGUF_U8, bytes, LONG);
    free(bytes);
}

static void (*const hostile[])(struct gguf_writer *w) = {
    a_long_merge,   a_long_merge_of_what_is_no_token, many_merges,
    a_long_token,   a_long_token_with_escapes,        many_tokens,
    a_long_charsmap};

START_TEST(a_hostile_vocabulary_takes_no_more_than_was_asked_for)
{
    struct heap_book b = {0};
    const struct gguf_room room = {heap_ask, &b};
    struct gguf_writer w = {0};
    struct tokenizer *t = NULL;
    struct gguf *g = NULL;
    struct err err = {0};
    char *path;
    int fd;

    if (!heap_counts())
        return;
    hostile[_i](&w);
    fd = gguf_writer_memfd(&w);
    gguf_writer_clear(&w);
    path = gguf_writer_fd_path(fd);
    ck_assert_msg(gguf_open(path, &g, &err) == 0, "%s", err.text);
    b.before = heap_used();
    ck_assert_msg(tokenizer_create_within(g, &room, &t, &err) == 0, "%s", err.text);
    heap_look(&b);
    ck_assert_msg(b.over <= HEAP_ALLOW, "%zu bytes more than the %zu that were asked for", b.over,
                  b.asked);
    ck_assert_uint_le(tokenizer_memory_bytes(t), b.asked);
    ck_assert_uint_le(heap_used() - b.before, tokenizer_memory_bytes(t) + HEAP_ALLOW);
    tokenizer_destroy(t);
    gguf_close(g);
    free(path);
    close(fd);
}
END_TEST

TCase *tcase_tokenizer_room(void)
{
    TCase *tc = tcase_create("room");

    tcase_add_loop_test(tc, a_hostile_vocabulary_takes_no_more_than_was_asked_for, 0,
                        ARRAY_LEN(hostile));
    return tc;
}
