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

/* -- encoding ------------------------------------------------------------------------------------- */

#define TEXT ((size_t)1 << 20)

static void letters_join(struct gguf_writer *w, const char *pre)
{
    const struct token more[] = {{"aa", 0, 0}, {"aaaa", 0, 0}, {"<x>", 0, TOKEN_USER_DEFINED}};

    write_bpe(w, pre, more, ARRAY_LEN(more), (const char *const[]){"a a", "aa aa"}, 2);
}

static void bpe(struct gguf_writer *w)
{
    letters_join(w, "gpt-2");
}

/* Looks for a word as a whole before it joins anything; its longest token is as long as the text. */
static void bpe_of_long_tokens(struct gguf_writer *w)
{
    char *text = letters('b', TEXT);

    write_bpe(w, "llama3", (const struct token[]){{text, 0, 0}, {"aa", 0, 0}}, 2,
              (const char *const[]){"a a"}, 1);
    free(text);
}

static void bpe_of_characters(struct gguf_writer *w)
{
    const struct token tokens[] = {
        {"a", 0, 0}, {"aa", 0, 0}, {"\xe2\x96\x81", 0, 0}, {"<x>", 0, TOKEN_USER_DEFINED}};

    write_tokens(w, "gemma4", tokens, ARRAY_LEN(tokens));
    gguf_writer_strings(w, "tokenizer.ggml.merges", (const char *const[]){"a a"}, 1);
}

static void spm(struct gguf_writer *w)
{
    const struct token more[] = {
        {"aa", -1, 0}, {"aaaa", -2, 0}, {"a\xe2\x96\x81", -3, 0}, {"<x>", 0, TOKEN_USER_DEFINED}};

    write_spm(w, more, ARRAY_LEN(more));
}

static void ugm(struct gguf_writer *w)
{
    const struct token tokens[] = {{"<pad>", 0, TOKEN_CONTROL},
                                   {"</s>", 0, TOKEN_CONTROL},
                                   {"<unk>", 0, TOKEN_UNKNOWN},
                                   {"a", -1, 0},
                                   {"<x>", 0, TOKEN_USER_DEFINED}};

    write_tokens(w, "t5", tokens, ARRAY_LEN(tokens));
}

static void wpm(struct gguf_writer *w)
{
    const struct token tokens[] = {{"[UNK]", 0, TOKEN_UNKNOWN},
                                   {"\xe2\x96\x81"
                                    "a",
                                    0, 0},
                                   {"a", 0, 0},
                                   {"<x>", 0, TOKEN_USER_DEFINED}};

    write_tokens(w, "bert", tokens, ARRAY_LEN(tokens));
    gguf_writer_u32(w, "tokenizer.ggml.unknown_token_id", 0);
}

static void rwkv(struct gguf_writer *w)
{
    const struct token tokens[] = {
        {"<unk>", 0, TOKEN_UNKNOWN}, {"a", 0, 0}, {"aa", 0, 0}, {"<x>", 0, TOKEN_USER_DEFINED}};

    write_tokens(w, "rwkv", tokens, ARRAY_LEN(tokens));
    gguf_writer_u32(w, "tokenizer.ggml.unknown_token_id", 0);
}

static void (*const vocabularies[])(struct gguf_writer *w) = {
    bpe, bpe_of_long_tokens, bpe_of_characters, spm, ugm, wpm, rwkv};

/* Nothing but one word, nothing but words, special tokens, spaces, bytes that are no text. */
static const char *const parts[] = {"a", "a ", "<x>", "<x> a", " ", "\xff", "\xe2\x96\x81"};

struct book {
    struct heap_book heap;
    size_t peak, ticks;
    long left; /* how often more is given, or told; < 0: always */
};

static int left_off(struct book *b, struct err *err)
{
    if (b->left < 0 || b->left-- > 0)
        return 0;
    return err_set(err, ERR_NOMEM, "no more");
}

static int ask(void *arg, size_t bytes, struct err *err)
{
    struct book *b = arg;
    int r = left_off(b, err);

    if (r < 0)
        return r;
    heap_ask(&b->heap, bytes, err);
    b->peak = MAX(b->peak, b->heap.asked);
    return 0;
}

static void back(void *arg, size_t bytes)
{
    struct book *b = arg;

    heap_look(&b->heap);
    ck_assert_uint_le(bytes, b->heap.asked);
    b->heap.asked -= bytes;
}

static int tick(void *arg, struct err *err)
{
    struct book *b = arg;

    heap_look(&b->heap);
    b->ticks++;
    return left_off(b, err);
}

static int encode_by(const struct tokenizer *t, const char *text, struct book *b,
                     struct token_list *ids, struct err *err)
{
    const struct token_room room = {ask, back, tick, b};
    const struct token_span all = {0, strlen(text), true};

    return tokenizer_encode_within(t, view_of(text), &all, 1, true, &room, ids, err);
}

START_TEST(a_long_text_takes_no_more_than_was_asked_for_while_it_is_encoded)
{
    struct gguf_writer w = {0};
    struct tokenizer *t;

    if (!heap_counts())
        return;
    vocabularies[_i](&w);
    t = make_tokenizer(&w);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        char *text = repeat(parts[i], TEXT / strlen(parts[i]));
        struct token_list ids = {0}, plain = {0};
        struct book b = {.left = -1};
        struct err err = {0};

        ck_assert_int_eq(tokenizer_encode(t, view_of(text), true, true, &plain, &err), 0);
        b.heap.before = heap_used();
        ck_assert_msg(encode_by(t, text, &b, &ids, &err) == 0, "%s", err.text);
        heap_look(&b.heap);
        ck_assert_msg(b.heap.over <= HEAP_ALLOW, "'%s': %zu bytes more than were asked for",
                      parts[i], b.heap.over);
        /* What is left is what the ids hold, and they are the same. */
        ck_assert_uint_eq(b.heap.asked, ids.cap * sizeof *ids.ids);
        ck_assert_uint_le(ids.cap, ids.n + 1);
        ck_assert_uint_gt(b.ticks, 10);
        ck_assert_uint_eq(ids.n, plain.n);
        ck_assert_mem_eq(ids.ids, plain.ids, ids.n * sizeof *ids.ids);
        token_list_clear(&plain);
        token_list_clear(&ids);
        free(text);
    }
    tokenizer_destroy(t);
}
END_TEST

/* Of what it asks for, and is told, nothing is left where any of it is refused. */
START_TEST(an_encoding_ends_wherever_room_is_refused_or_a_tick_says_so)
{
    struct gguf_writer w = {0};
    struct tokenizer *t;

    vocabularies[_i](&w);
    t = make_tokenizer(&w);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        char *text = repeat(parts[i], 40000);
        long n = 0;

        for (int r = -1; r < 0; n++) {
            struct token_list ids = {0};
            struct book b = {.left = n};
            struct err err = {0};

            r = encode_by(t, text, &b, &ids, &err);
            ck_assert(r == 0 || r == -ERR_NOMEM);
            ck_assert_uint_eq(b.heap.asked, ids.cap * sizeof *ids.ids);
            token_list_clear(&ids);
        }
        ck_assert_int_gt(n, 3);
        free(text);
    }
    tokenizer_destroy(t);
}
END_TEST

START_TEST(a_text_has_at_least_the_ids_that_are_told)
{
    struct gguf_writer w = {0};
    struct tokenizer *t;

    vocabularies[_i](&w);
    t = make_tokenizer(&w);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        char *text = repeat(parts[i], 5000);
        struct token_list ids = {0};
        struct err err = {0};

        ck_assert_int_eq(tokenizer_encode(t, view_of(text), false, true, &ids, &err), 0);
        ck_assert_uint_le(tokenizer_least_ids(t, strlen(text)), ids.n);
        token_list_clear(&ids);
        free(text);
    }
    tokenizer_destroy(t);
    letters_join(&w, "gpt-2");
    t = make_tokenizer(&w);
    ck_assert_uint_eq(tokenizer_least_ids(t, 0), 0);
    ck_assert_uint_eq(tokenizer_least_ids(t, 4), 1);
    ck_assert_uint_eq(tokenizer_least_ids(t, 4001), 1001);
    tokenizer_destroy(t);
}
END_TEST

TCase *tcase_tokenizer_room(void)
{
    TCase *tc = tcase_create("room");

    tcase_add_loop_test(tc, a_hostile_vocabulary_takes_no_more_than_was_asked_for, 0,
                        ARRAY_LEN(hostile));
    tcase_add_loop_test(tc, a_long_text_takes_no_more_than_was_asked_for_while_it_is_encoded, 0,
                        ARRAY_LEN(vocabularies));
    tcase_add_loop_test(tc, an_encoding_ends_wherever_room_is_refused_or_a_tick_says_so, 0,
                        ARRAY_LEN(vocabularies));
    tcase_add_loop_test(tc, a_text_has_at_least_the_ids_that_are_told, 0, ARRAY_LEN(vocabularies));
    return tc;
}
