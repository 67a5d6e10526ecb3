/*
 * check_digest - one model, one answer: the digest of all logits of a prompt
 * must not move with threads, batch or tier.
 *
 *     check_digest [--tokens N] [--only NAME] [--golden FILE] [MODEL.gguf]
 *
 * Without a model: tiny random ones of every family and format.  Prints a line
 * for each with the one digest, or those that differ.  --golden compares with
 * a file of such lines (see tests/golden/logits).  Exit 1 when one differs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/cpu/cpuid.h"
#include "common/alloc.h"
#include "common/hash.h"
#include "common/str.h"
#include "daemon/model/model.h"
#include "tests/support/cpu_backend.h"
#include "tests/support/tiny_model.h"

static const unsigned threads[] = {1, 2, 3};
static const size_t batches[] = {1, 7, 64, 512};
static const char *const tiers[] = {"scalar", "avx2", "avx512", "neon", "dotprod", "i8mm"};

struct test {
    char name[64];
    const char *path;
    const char *kv;
    size_t n_tokens;
};

static struct {
    int passed, failed;
    struct str lines; /* "name digest\n" of all */
} sum;

/* Does this machine have the tier itself (a cap would give the one below it)? */
static bool has_tier(const char *name)
{
    return strcmp(cpu_tier_name(cpu_tiers_cap(cpu_tiers(), name)), name) == 0;
}

static void die(const struct test *t, const struct err *err)
{
    fprintf(stderr, "check_digest: %s: %s\n", t->name, err->text);
    exit(1);
}

static uint64_t digest_of(struct model *m, const struct test *t, size_t batch)
{
    struct model_info info;
    int32_t *ids = xreallocarray(NULL, t->n_tokens, sizeof *ids);
    int32_t *rows = xreallocarray(NULL, t->n_tokens, sizeof *rows);
    uint64_t h = 0;
    struct err err = {0};

    model_info(m, &info);
    for (size_t i = 0; i < t->n_tokens; i++) {
        ids[i] = (int32_t)((i * 37 + 11) % info.n_vocab);
        rows[i] = (int32_t)i;
    }
    sequence_truncate(model_sequence(m), 0);
    for (size_t at = 0; at < t->n_tokens; at += batch) {
        size_t n = MIN(batch, t->n_tokens - at);
        const float *logits;

        if (model_eval(m, ids + at, n, rows, n, NULL, &logits, &err) < 0)
            die(t, &err);
        for (size_t i = 0; i < n; i++) /* row by row: the chain must not see the batch */
            h = hash_bytes_seed(logits + i * info.n_vocab, info.n_vocab * sizeof *logits, h);
    }
    free(rows);
    free(ids);
    return h;
}

/* All batches on one tier and number of threads; the first digest of all is the one to meet. */
static bool run_on(const struct test *t, const char *tier, unsigned n_threads, uint64_t *digest,
                   bool *have)
{
    struct model_options o = {.n_ctx = t->n_tokens,
                              .n_batch = MIN(t->n_tokens, 512),
                              .n_out = MIN(t->n_tokens, 512),
                              .kv = format_of_name(t->kv)};
    struct cpu_backend cpu = cpu_backend_open(n_threads, tier);
    struct ledger *ledger = ledger_create();
    struct model *m = NULL;
    struct err err = {0};
    bool same = true;

    if (model_open(t->path, &m, &err) < 0 ||
        model_load(m, &o, ledger, cpu.ops, cpu.be, NULL, NULL, NULL, &err) < 0)
        die(t, &err);
    for (size_t i = 0; i < ARRAY_LEN(batches); i++) {
        uint64_t h = digest_of(m, t, batches[i]);

        if (!*have)
            *digest = h;
        *have = true;
        if (h == *digest)
            continue;
        printf("FAIL %s: %016llx with %s, %u threads, batch %zu; it was %016llx\n", t->name,
               (unsigned long long)h, tier, n_threads, batches[i], (unsigned long long)*digest);
        same = false;
    }
    model_close(m);
    cpu_backend_close(&cpu);
    ledger_destroy(ledger);
    return same;
}

static void run(const struct test *t)
{
    uint64_t digest = 0;
    bool same = true, have = false;
    int n = 0;

    for (size_t i = 0; i < ARRAY_LEN(tiers); i++) {
        if (!has_tier(tiers[i]))
            continue;
        for (size_t k = 0; k < ARRAY_LEN(threads); k++, n += (int)ARRAY_LEN(batches))
            same &= run_on(t, tiers[i], threads[k], &digest, &have);
    }
    if (same) {
        printf("ok   %s %016llx (%d ways)\n", t->name, (unsigned long long)digest, n);
        str_addf(&sum.lines, "%s %016llx\n", t->name, (unsigned long long)digest);
        sum.passed++;
    } else {
        sum.failed++;
    }
    fflush(stdout);
}

static void run_tiny(const struct tiny_model *o, const char *kv, size_t n_tokens, const char *only)
{
    struct test t = {.kv = kv, .n_tokens = n_tokens};
    int fd;
    char *path;

    snprintf(t.name, sizeof t.name, "%s-%s%s%s-kv_%s-%zu", o->family, o->fmt->name,
             o->fmt2 ? "+" : "", o->fmt2 ? o->fmt2->name : "", kv, n_tokens);
    if (only && !strstr(t.name, only))
        return;
    fd = tiny_model_memfd(o);
    t.path = path = gguf_writer_fd_path(fd);
    run(&t);
    free(path);
    close(fd);
}

static bool holds_weights(const struct format *f)
{
    return f->gguf_type < 24 || f->gguf_type > 28; /* not i8 … i64, f64 */
}

static void run_all_tiny(size_t n_tokens, const char *only)
{
    static const char *const kvs[] = {"f32", "q8_0", "q4_0"};
    struct tiny_model mix = {
        .fmt = format_of(FORMAT_q4_k), .fmt2 = format_of(FORMAT_q6_k), .seed = 1};

    for (int f = 0; f < FORMAT_COUNT; f++) {
        struct tiny_model o = {.family = "llama", .fmt = format_of(f), .n_layers = 1, .seed = 1};

        if (holds_weights(o.fmt))
            run_tiny(&o, "f16", n_tokens, only);
    }
    for (size_t i = 0; tiny_families[i]; i++) {
        mix.family = tiny_families[i];
        run_tiny(&mix, "f16", n_tokens, only);
    }
    mix.family = "qwen3";
    mix.n_layers = 1;
    for (size_t i = 0; i < ARRAY_LEN(kvs); i++)
        run_tiny(&mix, kvs[i], n_tokens, only);
    run_tiny(&mix, "f16", 600, only); /* more than a batch and than two chunks of the cache */
}

/* Every line of the file that was asked for must be one of ours. */
static void compare(const char *path, const char *only)
{
    char line[160], *end;
    FILE *f = fopen(path, "r");

    if (!f) {
        printf("FAIL %s cannot be read\n", path);
        sum.failed++;
        return;
    }
    while (fgets(line, sizeof line, f)) {
        size_t name = strcspn(line, " ");
        const char *mine;

        if (line[0] == '#' || !line[name])
            continue;
        if (only && !strstr(line, only))
            continue;
        line[name + 1 + strcspn(line + name + 1, " \n")] = '\n';
        end = strchr(line, '\n');
        end[1] = '\0';
        mine = strstr(str_text(&sum.lines), line);
        if (!mine || (mine != str_text(&sum.lines) && mine[-1] != '\n')) {
            printf("FAIL %s is not what this build gives; stored: %s", path, line);
            sum.failed++;
        }
    }
    fclose(f);
}

int main(int argc, char **argv)
{
    const char *only = NULL, *golden = NULL, *model = NULL;
    size_t n_tokens = 72;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--tokens") == 0 && i + 1 < argc)
            n_tokens = strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            only = argv[++i];
        else if (strcmp(argv[i], "--golden") == 0 && i + 1 < argc)
            golden = argv[++i];
        else if (argv[i][0] != '-' && !model)
            model = argv[i];
        else
            model = NULL, i = argc, n_tokens = 0;
    }
    if (!n_tokens) {
        fputs("usage: check_digest [--tokens N] [--only NAME] [--golden FILE] [MODEL.gguf]\n",
              stderr);
        return 2;
    }
    if (model) {
        struct test t = {.path = model, .kv = "f16", .n_tokens = n_tokens};
        const char *slash = strrchr(model, '/');

        snprintf(t.name, sizeof t.name, "%.63s", slash ? slash + 1 : model);
        run(&t);
    } else {
        run_all_tiny(n_tokens, only);
    }
    if (golden)
        compare(golden, only);
    printf("digest: %d passed, %d failed\n", sum.passed, sum.failed);
    str_clear(&sum.lines);
    return sum.failed ? 1 : 0;
}
