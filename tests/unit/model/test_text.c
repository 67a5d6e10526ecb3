/* What is read of a file is charged before it is taken, whatever the file; and what a name or template is worth. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/alloc.h"
#include "common/utf8.h"
#include "daemon/model/model_priv.h"
#include "tests/support/family_model.h"
#include "tests/support/heap.h"
#include "tests/unit/model/tiny.h"

TCase *tcase_model_text(void);

#define LONG ((size_t)6 << 20)

static struct ledger *ledger;

static void set_up(void)
{
    ledger = ledger_create();
}

static void tear_down(void)
{
    ck_assert_uint_eq(ledger_used(ledger, POOL_RAM), 0);
    ledger_destroy(ledger);
}

static void add_text(struct gguf_writer *w, const char *key, struct view text)
{
    gguf_writer_begin(w, view_of(key), GGUF_STRING);
    gguf_writer_raw_u64(w, text.len);
    gguf_writer_raw(w, text.p, text.len);
}

/* LONG bytes, the one at nul a zero. */
static void add_long_text(struct gguf_writer *w, const char *key, size_t nul)
{
    char *text = xmalloc(LONG);

    memset(text, 'x', LONG);
    if (nul < LONG)
        text[nul] = '\0';
    add_text(w, key, (struct view){text, LONG});
    free(text);
}

static void a_long_name(struct gguf_writer *w)
{
    add_long_text(w, "general.name", LONG);
}

static void a_long_template(struct gguf_writer *w)
{
    add_long_text(w, "tokenizer.chat_template", LONG);
}

static void a_template_with_a_nul(struct gguf_writer *w)
{
    add_long_text(w, "tokenizer.chat_template", 5);
}

static void long_keys(struct gguf_writer *w)
{
    char key[65001];

    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    for (int i = 0; i < 100; i++) {
        key[0] = (char)('0' + i / 10);
        key[1] = (char)('0' + i % 10);
        gguf_writer_u32(w, key, 1);
    }
}

static void many_tensors(struct gguf_writer *w)
{
    for (unsigned i = 0; i < 33000; i++) {
        char name[64];

        snprintf(name, sizeof name, "%063u", i);
        gguf_writer_tensor(w, name, 0, 1, (uint64_t[]){1}, NULL);
    }
}

static const struct hostile {
    void (*add)(struct gguf_writer *w);
    const char *template; /* of the rest of the file; "": none */
    bool named;           /* the file's own name stays */
} hostile[] = {{a_long_name, NULL, false},
               {a_long_template, "", true},
               {a_template_with_a_nul, "", true},
               {long_keys, NULL, true},
               {many_tensors, NULL, true}};

static int open_within(struct gguf_writer *w, struct model **ret, size_t *ret_heap, struct err *err)
{
    struct model_room room = {.ledger = ledger, .who = "model 'hostile'"};
    int fd = gguf_writer_memfd(w);
    char *path = gguf_writer_fd_path(fd);
    size_t before;
    int r;

    gguf_writer_clear(w);
    before = heap_used();
    r = model_open_within(path, &room, ret, err);
    *ret_heap = heap_used() - before;
    free(path);
    close(fd);
    return r;
}

START_TEST(a_hostile_file_holds_no_more_than_is_charged)
{
    const struct hostile *h = &hostile[_i];
    struct tiny_model o = {.family = "llama",
                           .chat_template = h->template,
                           .without = h->named ? NULL : "general.name"};
    struct gguf_writer w = {0};
    struct model *m = NULL;
    struct err err = {0};
    size_t heap, used;

    if (!heap_counts())
        return;
    h->add(&w);
    tiny_model_build(&o, &w);
    ck_assert_msg(open_within(&w, &m, &heap, &err) == 0, "%s", err.text);
    used = ledger_used(ledger, POOL_RAM);
    ck_assert_uint_eq(used, m->text_charged);
    ck_assert_msg(m->text_asked >= used, "%zu asked for, %zu held", m->text_asked, used);
    ck_assert_msg(heap <= used + sizeof *m + HEAP_ALLOW, "%zu in the heap, %zu charged", heap,
                  used);
    model_close(m);
}
END_TEST

START_TEST(a_file_of_any_family_asks_for_what_it_holds)
{
    for (size_t i = 0; family_names[i]; i++) {
        const char *variant;

        for (size_t k = 0; (variant = family_variant(family_names[i], k)); k++) {
            const struct family_file o = {.family = family_names[i], .variant = variant};
            struct gguf_writer w = {0};
            struct model *m = NULL;
            struct err err = {0};
            char name[96];
            size_t heap;

            ck_assert(family_file_build(&o, &w, name));
            ck_assert_msg(open_within(&w, &m, &heap, &err) == 0, "%s: %s", o.family, err.text);
            ck_assert_msg(m->text_asked >= model_text_bytes(m), "%s %s: %zu asked for, %zu held",
                          o.family, variant, m->text_asked, model_text_bytes(m));
            model_close(m);
        }
    }
}
END_TEST

static const struct {
    struct view text;
    const char *name; /* NULL: the file's */
} names[] = {{VIEW("short"), "short"},
             {VIEW("cut\0here"), "cut"},
             {VIEW(""), NULL},
             {VIEW("\0nothing"), NULL},
             {VIEW("damaged \xe2\x82"), "damaged \xe2\x82"}};

START_TEST(a_name_ends_at_its_first_zero_byte)
{
    struct tiny_model o = {.family = "llama", .without = "general.name", .no_vocab = true};
    struct gguf_writer w = {0};
    struct model *m = NULL;
    struct err err = {0};

    add_text(&w, "general.name", names[_i].text);
    tiny_model_build(&o, &w);
    ck_assert_msg(tiny_open(&w, &m, &err) == 0, "%s", err.text);
    if (names[_i].name)
        ck_assert_str_eq(m->name, names[_i].name);
    else
        ck_assert_msg(strspn(m->name, "0123456789") == strlen(m->name), "%s", m->name);
    model_close(m);
}
END_TEST

/* From a length of one byte less than fits to one where any byte of a character would be the last. */
START_TEST(a_long_name_is_cut_between_two_characters)
{
    struct tiny_model o = {.family = "llama", .without = "general.name", .no_vocab = true};
    struct gguf_writer w = {0};
    struct str text = {0};
    struct model *m = NULL;
    struct err err = {0};
    struct model_info info;

    for (int i = 0; i < _i; i++)
        str_addc(&text, 'x');
    while (text.len < 1000)
        str_adds(&text, "€");
    add_text(&w, "general.name", view_of_str(&text));
    tiny_model_build(&o, &w);
    ck_assert_msg(tiny_open(&w, &m, &err) == 0, "%s", err.text);
    ck_assert_uint_le(strlen(m->name), 255);
    ck_assert_uint_ge(strlen(m->name), 253);
    ck_assert(utf8_valid(m->name, strlen(m->name)));
    ck_assert_int_eq(strncmp(m->name, str_text(&text), strlen(m->name)), 0);
    model_info(m, &info);
    ck_assert_msg(utf8_valid(info.name, strlen(info.name)), "%s", info.name);
    ck_assert_uint_ge(strlen(info.name), sizeof info.name - 4);
    str_clear(&text);
    model_close(m);
}
END_TEST

START_TEST(a_template_ends_at_its_first_zero_byte)
{
    struct tiny_model o = {.family = "llama", .chat_template = ""};
    struct gguf_writer w = {0};
    struct model *m = NULL;
    struct model_info info;
    struct err err = {0};
    size_t heap;

    add_text(&w, "tokenizer.chat_template", VIEW("{{ 1 }}\0{{ 2 }}"));
    tiny_model_build(&o, &w);
    ck_assert_msg(open_within(&w, &m, &heap, &err) == 0, "%s", err.text);
    model_info(m, &info);
    ck_assert_str_eq(info.chat_template, "{{ 1 }}");
    model_close(m);
}
END_TEST

TCase *tcase_model_text(void)
{
    TCase *tc = tcase_create("text");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, a_hostile_file_holds_no_more_than_is_charged, 0, ARRAY_LEN(hostile));
    tcase_add_test(tc, a_file_of_any_family_asks_for_what_it_holds);
    tcase_add_loop_test(tc, a_name_ends_at_its_first_zero_byte, 0, ARRAY_LEN(names));
    tcase_add_loop_test(tc, a_long_name_is_cut_between_two_characters, 0, 3);
    tcase_add_test(tc, a_template_ends_at_its_first_zero_byte);
    return tc;
}
