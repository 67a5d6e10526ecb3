/* What holds for every family: a sound file opens, and each fault of another is told by name. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "common/alloc.h"
#include "tests/support/family_model.h"
#include "tests/unit/model/tiny.h"

TCase *tcase_model_families(void);

static void count_layers(void *arg, int from, int to, const char *kind)
{
    ck_assert(kind[0]);
    *(int *)arg += to - from + 1;
}

START_TEST(every_file_of_a_family_opens_and_tells_its_layers)
{
    const char *variant;

    for (size_t i = 0; (variant = family_variant(family_names[_i], i)); i++) {
        const struct family_file o = {.family = family_names[_i], .variant = variant};
        struct gguf_writer w = {0};
        struct model *m = NULL;
        struct err err = {0};
        struct model_info info;
        int n_layers = 0;
        char name[96];

        ck_assert(family_file_build(&o, &w, name));
        ck_assert_msg(tiny_open(&w, &m, &err) == 0, "%s %s: %s", o.family, variant, err.text);
        model_layer_kinds(m, count_layers, &n_layers);
        model_info(m, &info);
        ck_assert_int_eq(n_layers, (int)info.n_layers);
        model_close(m);
    }
}
END_TEST

struct wrong_files {
    size_t n, let_through, not_named;
};

/* Opens a file with a fault; false when there is no such fault in files of this kind. */
static bool open_wrong(const struct family_file *o, struct wrong_files *count)
{
    struct gguf_writer w = {0};
    struct model *m = NULL;
    struct err err = {0};
    char name[96];
    int r;

    if (!family_file_build(o, &w, name)) {
        gguf_writer_clear(&w);
        return false;
    }
    r = tiny_open(&w, &m, &err);
    model_close(m);
    if (!name[0])
        return true;
    count->n++;
    if (r >= 0) {
        count->let_through++;
        printf("%s %s: fault %d of %s is let through\n", o->family, o->variant, o->fault, name);
    } else if (!strstr(err.text, name)) {
        count->not_named++;
        printf("%s %s: fault %d of %s: %s\n", o->family, o->variant, o->fault, name, err.text);
    }
    return true;
}

/* Each fault in turn, of each thing that each file can have it in. */
START_TEST(every_wrong_file_of_every_family_is_refused_by_name)
{
    struct wrong_files count = {0};
    size_t n_families = 0, n_files = 0;

    for (; family_names[n_families]; n_families++) {
        struct family_file o = {.family = family_names[n_families]};

        for (size_t i = 0; (o.variant = family_variant(o.family, i)); i++, n_files++)
            /* Variants differ in tensors; a key is as wrong in one as in the other. */
            for (int fault = FAMILY_SOUND + 1; fault < (i ? FAMILY_NO_KEY : FAMILY_FAULTS);
                 fault++) {
                o.fault = (enum family_fault)fault;
                for (o.which = 0; open_wrong(&o, &count); o.which++)
                    ;
            }
    }
    printf("note: %zu families, %zu kinds of files, %zu wrong ones: %zu refused by name, %zu "
           "without, %zu "
           "let through\n",
           n_families, n_files, count.n, count.n - count.not_named - count.let_through,
           count.not_named, count.let_through);
    fflush(stdout);
    ck_assert_uint_gt(count.n, 300 * n_families);
    ck_assert_uint_eq(count.not_named, 0);
    ck_assert_uint_eq(count.let_through, 0);
}
END_TEST

/* The last logits of n ids in batches of step, with room for batches of n_batch; words: of a file that is odd. */
static void last_logits(const char *family, const char *words, size_t n, size_t n_batch,
                        size_t step, float *out, size_t *ret_chunks)
{
    struct model_options options = {.n_ctx = FAMILY_N_CTX, .n_batch = n_batch, .n_out = 1};
    struct tiny_engine e = {.cpu = cpu_backend_open(2, NULL), .ledger = ledger_create()};
    struct gguf_writer w = {0};
    struct err err = {0};
    int32_t ids[FAMILY_N_CTX], row;
    const float *logits = NULL;
    struct family_file o = {.family = family};

    ck_assert_int_eq(family_file_build_odd(&o, words, &w, &err), 0);
    ck_assert_msg(tiny_open(&w, &e.m, &err) == 0, "%s", err.text);
    ck_assert_msg(
        model_load(e.m, &options, e.ledger, e.cpu.ops, e.cpu.be, NULL, NULL, NULL, &err) == 0, "%s",
        err.text);
    for (size_t i = 0; i < n; i++)
        ids[i] = (int32_t)(i * 37 % FAMILY_N_VOCAB);
    for (size_t at = 0, k; at < n; at += k) {
        k = MIN(step, n - at);
        row = (int32_t)k - 1;
        ck_assert_msg(model_eval(e.m, ids + at, k, &row, 1, NULL, &logits, &err) == 0, "%s",
                      err.text);
    }
    memcpy(out, logits, FAMILY_N_VOCAB * sizeof *out);
    *ret_chunks = sequence_k(model_sequence(e.m), 0).n[3];
    tiny_close(&e);
}

static const char *const windowed[] = {"gpt_oss", "gemma4", "cohere2"};

START_TEST(a_window_that_has_gone_round_its_ring_gives_the_bits_of_a_full_cache)
{
    float full[FAMILY_N_VOCAB], ring[FAMILY_N_VOCAB];
    size_t full_chunks, ring_chunks;

    last_logits(windowed[_i], "", 2600, FAMILY_N_CTX, 2600, full, &full_chunks);
    last_logits(windowed[_i], "", 2600, 100, 100, ring, &ring_chunks);
    ck_assert_uint_eq(full_chunks, FAMILY_N_CTX / OP_KV_CHUNK);
    ck_assert_uint_lt(ring_chunks, 2600 / OP_KV_CHUNK);
    ck_assert(full[0] != full[1]);
    ck_assert_mem_eq(full, ring, sizeof full);
}
END_TEST

/* Of a batch only the last row is wanted, and its last layer too chooses experts by the token. */
START_TEST(experts_by_token_are_those_of_the_row_that_is_wanted)
{
    float whole[FAMILY_N_VOCAB], steps[FAMILY_N_VOCAB];
    size_t chunks;

    last_logits("deepseek4", "hash_layer_count=4", 40, 40, 40, whole, &chunks);
    last_logits("deepseek4", "hash_layer_count=4", 40, 40, 1, steps, &chunks);
    ck_assert_mem_eq(whole, steps, sizeof whole);
}
END_TEST

TCase *tcase_model_families(void)
{
    TCase *tc = tcase_create("families");
    int n = 0;

    while (family_names[n])
        n++;
    tcase_add_loop_test(tc, every_file_of_a_family_opens_and_tells_its_layers, 0, n);
    tcase_add_test(tc, every_wrong_file_of_every_family_is_refused_by_name);
    tcase_add_test(tc, experts_by_token_are_those_of_the_row_that_is_wanted);
    tcase_add_loop_test(tc, a_window_that_has_gone_round_its_ring_gives_the_bits_of_a_full_cache, 0,
                        (int)ARRAY_LEN(windowed));
    return tc;
}
