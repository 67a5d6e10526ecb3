/*
 * Model files of every family whose numbers are odd and whose tensors fit them: read, planned, loaded and run.
 *
 * The first byte of an input chooses the family and its variant, the second the context, the third the format of the
 * matrices and whether optional tensors are there; then each four choose a key and what it is.
 */
/* room: daemon/model */
/* runs: 1/32 */
#include <string.h>
#include <unistd.h>

#include "common/alloc.h"
#include "common/str.h"
#include "daemon/model/model.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/cpu_backend.h"
#include "tests/support/family_model.h"

#define BUDGET_BYTES (48u << 20)

static const char *const keys[] = {
#define KEY(id, name, type, field, lo, hi) name,
#include "daemon/model/keys.def"
#undef KEY
};

static const char *const odd_values[] = {
    "0",   "1",   "2",     "3",     "4",    "5",    "6",     "7",       "8",          "12",
    "16",  "24",  "32",    "33",    "48",   "63",   "64",    "65",      "96",         "100",
    "128", "255", "256",   "1023",  "1024", "4096", "65536", "1000000", "2147483647", "4294967295",
    "-1",  "nan", "1e-30", "0.001", "0.5",  "1e30", "true",  "false",   "yarn",       "",
};

static const char *odd_value(uint8_t b)
{
    return odd_values[b % ARRAY_LEN(odd_values)];
}

/* Four bytes as a word of family_model.def: one number, or one that alternates with another from layer to layer. */
static void add_word(struct str *words, const uint8_t *data)
{
    const char *key = keys[data[0] % ARRAY_LEN(keys)];
    const char *one = odd_value(data[1]), *other = odd_value(data[2]);

    if (data[3] & 1)
        str_addf(words, " %s=%s,%s,%s,%s", key, one, other, one, other);
    else
        str_addf(words, " %s=%s", key, one);
}

static void ignore_tensor(void *arg, const struct gguf_tensor *t)
{
    (void)arg;
    FUZZ_REQUIRE(t->bytes > 0);
}

static void ignore_key(void *arg, struct view key)
{
    (void)arg;
    FUZZ_REQUIRE(key.len > 0);
}

static void check_kind(void *arg, int from, int to, const char *kind)
{
    int *next = arg;

    FUZZ_REQUIRE(from == *next && to >= from && kind[0]);
    *next = to + 1;
}

/* All that a person can ask about a file before it is loaded. */
static void ask(const struct model *m)
{
    struct model_info info;
    int next = 0;

    model_info(m, &info);
    model_unused_tensors(m, ignore_tensor, NULL);
    model_unused_keys(m, ignore_key, NULL);
    model_layer_kinds(m, check_kind, &next);
    FUZZ_REQUIRE((size_t)next == info.n_layers);
}

static void run(struct model *m, const struct model_info *info, struct err *err)
{
    static const int32_t ids[6] = {1, 2, 3, 1, 2, 5};
    const float *logits = NULL;
    int32_t row = 4;
    float *embedding;
    int r;

    if (info->pooling) {
        embedding = XNEW_ARRAY(float, info->n_embd);
        r = model_embed(m, ids, 5, NULL, embedding, err);
        free(embedding);
    } else {
        r = model_eval(m, ids, 5, &row, 1, NULL, &logits, err);
        row = 0;
        if (r >= 0)
            r = model_eval(m, ids + 5, 1, &row, 1, NULL, &logits, err);
    }
    FUZZ_REQUIRE(r >= 0 || err->text[0]);
}

static void load(struct model *m, size_t n_ctx, struct cpu_backend *cpu)
{
    struct model_options options = {.n_ctx = n_ctx, .n_batch = 8};
    struct ledger *ledger = ledger_create();
    struct model_plan plan;
    struct model_info info;
    struct err err = {0};
    int r;

    FUZZ_REQUIRE(ledger_set_budget(ledger, POOL_RAM, BUDGET_BYTES, &err) >= 0);
    model_info(m, &info);
    r = model_plan(m, &options, cpu->ops, cpu->be, BUDGET_BYTES, &plan, &err);
    FUZZ_REQUIRE(r >= 0 || err.text[0]);
    if (r >= 0) {
        r = model_load(m, &options, ledger, cpu->ops, cpu->be, NULL, NULL, NULL, &err);
        FUZZ_REQUIRE(r >= 0 || err.text[0]);
        FUZZ_REQUIRE(r < 0 || plan.fits);
        FUZZ_REQUIRE(ledger_used(ledger, POOL_RAM) <= BUDGET_BYTES);
    }
    if (r >= 0 && info.n_vocab > 5)
        run(m, &info, &err);
    model_close(m);
    FUZZ_REQUIRE(ledger_used(ledger, POOL_RAM) == 0);
    ledger_destroy(ledger);
}

static void choose_family(uint8_t b, struct family_file *o)
{
    size_t n = 1, n_variants = 1; /* there is one of each */

    while (family_names[n])
        n++;
    o->family = family_names[b % n];
    while (family_variant(o->family, n_variants))
        n_variants++;
    o->variant = family_variant(o->family, b / n % n_variants);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t contexts[] = {64, 0, 1, 7, 300, 4096, 1 << 20};
    static struct cpu_backend cpu;
    struct family_file o = {0};
    struct gguf_writer w = {0};
    struct str words = {0};
    struct model *m = NULL;
    struct err err = {0};
    char *path;
    int fd;

    if (size < 3)
        return 0;
    if (!cpu.be)
        cpu = cpu_backend_open(1, NULL);
    choose_family(data[0], &o);
    o.fmt = format_table[data[2] % 64 % FORMAT_COUNT];
    /* The grids of the smallest take seconds to encode. */
    if (!o.fmt->from_f32 || strncmp(o.fmt->name, "iq", 2) == 0)
        o.fmt = NULL;
    if (data[2] >= 128)
        str_adds(&words, " +*");
    for (size_t i = 3; i + 4 <= size && i < 3 + 4 * 8; i += 4)
        add_word(&words, data + i);
    if (family_file_build_odd(&o, str_text(&words), &w, &err) >= 0) {
        fd = gguf_writer_memfd(&w);
        path = gguf_writer_fd_path(fd);
        if (model_open(path, &m, &err) >= 0) {
            ask(m);
            load(m, contexts[data[1] % ARRAY_LEN(contexts)], &cpu);
        }
        free(path);
        close(fd);
    }
    FUZZ_REQUIRE(m || err.text[0]);
    gguf_writer_clear(&w);
    str_clear(&words);
    return 0;
}
