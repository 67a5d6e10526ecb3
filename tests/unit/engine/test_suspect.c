/* What show finds odd about a file. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/alloc.h"
#include "daemon/engine/parse.h"
#include "daemon/engine/suspect.h"
#include "tests/support/tiny_model.h"

TCase *tcase_engine_suspect(void);

static size_t most_charged, charged;

static int reserve(void *arg, size_t bytes, struct err *err)
{
    (void)arg;
    (void)err;
    charged += bytes;
    most_charged = MAX(most_charged, charged);
    return 0;
}

static void release(void *arg, size_t bytes)
{
    (void)arg;
    charged -= bytes;
}

/* What is odd about the model, one sentence a line. */
static char *oddities(struct gguf_writer *w, const struct tiny_model *o)
{
    const struct parse_room room = {reserve, release, NULL};
    struct str all = {0};
    struct model *m = NULL;
    json_t *list, *sentence;
    struct err err;
    char *path;
    size_t i;
    int fd;

    tiny_model_build(o, w);
    fd = gguf_writer_memfd(w);
    path = gguf_writer_fd_path(fd);
    ck_assert_msg(model_open(path, &m, &err) == 0, "%s", err.text);
    list = suspect_list(m, &room);
    ck_assert_uint_eq(charged, 0);
    json_array_foreach(list, i, sentence)
    {
        str_addf(&all, "%s\n", json_string_value(sentence));
    }
    json_decref(list);
    model_close(m);
    close(fd);
    free(path);
    gguf_writer_clear(w);
    return str_take(&all);
}

START_TEST(a_sound_model_of_any_family_is_not_suspected)
{
    struct tiny_model o = {.family = tiny_families[_i], .seed = 1};
    struct gguf_writer w = {0};
    char *odd = oddities(&w, &o);

    ck_assert_msg(!odd || !*odd, "%s: %s", o.family, odd);
    free(odd);
}
END_TEST

START_TEST(a_key_that_nobody_reads_is_named)
{
    struct tiny_model o = {.family = "llama", .seed = 1};
    struct gguf_writer w = {0};
    char *odd;

    gguf_writer_f32(&w, "llama.attention.moon_phase", 0.5f);
    gguf_writer_u32(&w, "other.attention.head_count", 7); /* not of this architecture */
    odd = oddities(&w, &o);
    ck_assert_str_eq(odd, "key 'llama.attention.moon_phase' is not read by rnbd\n");
    free(odd);
}
END_TEST

START_TEST(a_marker_that_is_no_token_is_named_once)
{
    struct tiny_model o = {.family = "llama",
                           .chat_template = "{% for m in messages %}<|start_of_role|>{{ m.role }}"
                                            "<|im_start|>{{ m.content }}<|im_end|>"
                                            "<|start_of_role|>{% endfor %}"};
    struct gguf_writer w = {0};
    char *odd = oddities(&w, &o);

    ck_assert_str_eq(odd, "the chat template writes '<|start_of_role|>', which is no token of the "
                          "vocabulary\n");
    free(odd);
}
END_TEST

/* Each is looked for in what was told alone, or a file could have a reader busy for hours. */
START_TEST(of_many_markers_some_are_named)
{
    struct str text = {0};
    struct tiny_model o = {.family = "llama"};
    struct gguf_writer w = {0};
    size_t told = 0;
    char *odd;

    for (int i = 0; i < 200000; i++)
        str_addf(&text, "<|m%d|>", i);
    o.chat_template = str_text(&text);
    most_charged = 0;
    odd = oddities(&w, &o);
    for (const char *p = odd; (p = strstr(p, "<|m")); p++)
        told++;
    ck_assert_uint_eq(told, 32);
    ck_assert_uint_gt(most_charged, text.len);
    free(odd);
    str_clear(&text);
}
END_TEST

START_TEST(no_template_and_a_broken_one_are_told)
{
    struct tiny_model o = {.family = "llama", .chat_template = ""};
    struct gguf_writer w = {0};
    char *odd = oddities(&w, &o);

    ck_assert_ptr_nonnull(strstr(odd, "there is no chat template"));
    free(odd);
    o.chat_template = "{% for m in messages %}{{ m.content }}";
    odd = oddities(&w, &o);
    ck_assert_ptr_nonnull(strstr(odd, "the chat template is broken"));
    free(odd);
}
END_TEST

START_TEST(a_model_without_a_vocabulary_takes_ids)
{
    struct tiny_model o = {.family = "llama", .no_vocab = true};
    struct gguf_writer w = {0};
    char *odd = oddities(&w, &o);

    ck_assert_ptr_nonnull(strstr(odd, "no vocabulary"));
    free(odd);
}
END_TEST

START_TEST(an_embedding_model_needs_no_template)
{
    struct tiny_model o = {.family = "llama", .chat_template = "", .pooling = 1};
    struct gguf_writer w = {0};
    char *odd = oddities(&w, &o);

    ck_assert_ptr_null(strstr(odd, "chat template"));
    free(odd);
}
END_TEST

static size_t n_families(void)
{
    size_t n = 0;

    while (tiny_families[n])
        n++;
    return n;
}

TCase *tcase_engine_suspect(void)
{
    TCase *tc = tcase_create("suspect");

    tcase_add_loop_test(tc, a_sound_model_of_any_family_is_not_suspected, 0, (int)n_families());
    tcase_add_test(tc, a_key_that_nobody_reads_is_named);
    tcase_add_test(tc, a_marker_that_is_no_token_is_named_once);
    tcase_add_test(tc, of_many_markers_some_are_named);
    tcase_add_test(tc, no_template_and_a_broken_one_are_told);
    tcase_add_test(tc, a_model_without_a_vocabulary_takes_ids);
    tcase_add_test(tc, an_embedding_model_needs_no_template);
    return tc;
}
