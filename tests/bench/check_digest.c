/*
 * check_digest - one model, one answer: the digest of all logits of a prompt
 * must not move with threads, batch or tier.
 *
 *     check_digest [--tokens N] [--only NAME] [--golden FILE] [MODEL.gguf]
 *
 * Without a model: tiny random ones of every family and format.  Those longer
 * than a batch are computed to the last 512 tokens once, and from there in
 * every way: the cache that they begin with is the same bytes for all, and what
 * is hashed are the last rows.  Prints a line
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
#include "tests/support/die.h"
#include "tests/support/loaded.h"
#include "tests/support/tiny_model.h"

static const unsigned threads[] = {1, 2, 3};
static const size_t batches[] = {1, 7, 64, 512};
static const char *const tiers[] = {"scalar", "avx2", "avx512", "neon", "dotprod", "i8mm"};

#define BATCH_MAX 512
#define N_LAST    40 /* rows hashed of a test longer than a batch */

struct test {
    char name[64];
    const char *path;
    const char *kv;
    size_t n_tokens;
};

/* The caches of a sequence up to the last batch of a long test. */
struct cache {
    size_t n; /* positions; 0: none yet */
    size_t n_layers;
    void *k[8], *v[8];
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

static bool is_long(const struct test *t)
{
    return t->n_tokens > BATCH_MAX;
}

static int32_t id_at(size_t i, size_t n_vocab)
{
    return (int32_t)((i * 37 + 11) % n_vocab);
}

/* Appends tokens up to `to`; hashes the rows from `hashed` on, one by one: the chain must not see the batch. */
static uint64_t eval(struct model *m, size_t to, size_t hashed, size_t batch)
{
    int32_t ids[BATCH_MAX], rows[BATCH_MAX];
    struct model_info info;
    uint64_t h = 0;

    model_info(m, &info);
    for (size_t at = sequence_length(model_sequence(m)), n; at < to; at += n) {
        const float *logits;
        size_t n_out = 0;

        n = MIN(batch, to - at);
        for (size_t i = 0; i < n; i++) {
            ids[i] = id_at(at + i, info.n_vocab);
            if (at + i >= hashed)
                rows[n_out++] = (int32_t)i;
        }
        logits = must_eval(m, ids, n, rows, n_out);
        for (size_t i = 0; i < n_out; i++)
            h = hash_bytes_seed(logits + i * info.n_vocab, info.n_vocab * sizeof *logits, h);
    }
    return h;
}

/*
 * A long test begins where its last rows fill whole batches: what is before
 * them has been computed by the pass with a larger batch.
 */
static uint64_t digest_of(struct model *m, const struct test *t, size_t batch)
{
    size_t hashed = is_long(t) ? t->n_tokens - N_LAST : 0;
    size_t from = is_long(t) ? t->n_tokens - (N_LAST + batch - 1) / batch * batch : 0;

    sequence_truncate(model_sequence(m), from);
    return eval(m, t->n_tokens, hashed, batch);
}

static void cache_save(struct cache *c, const struct model *m, struct sequence *s)
{
    struct model_info info;

    model_info(m, &info);
    c->n = sequence_length(s);
    c->n_layers = info.n_layers;
    for (size_t i = 0; i < c->n_layers && i < ARRAY_LEN(c->k); i++) {
        struct tensor k = sequence_k(s, i), v = sequence_v(s, i);

        c->k[i] = xmemdup(k.data, tensor_bytes(&k));
        c->v[i] = xmemdup(v.data, tensor_bytes(&v));
    }
}

static void cache_restore(const struct cache *c, struct sequence *s, const int32_t *ids)
{
    for (size_t i = 0; i < c->n_layers; i++) {
        struct tensor k = sequence_k(s, i), v = sequence_v(s, i);

        memcpy(k.data, c->k[i], tensor_bytes(&k));
        memcpy(v.data, c->v[i], tensor_bytes(&v));
    }
    sequence_append(s, ids, c->n);
}

static void cache_clear(struct cache *c)
{
    for (size_t i = 0; i < ARRAY_LEN(c->k); i++) {
        free(c->k[i]);
        free(c->v[i]);
    }
}

/* Up to the last batch: computed by the first way that comes, and the same bytes for those after it. */
static void fill(struct cache *c, struct model *m, const struct test *t)
{
    size_t n = t->n_tokens - BATCH_MAX;
    struct model_info info;
    int32_t *ids;

    if (!c->n) {
        eval(m, n, n, BATCH_MAX);
        cache_save(c, m, model_sequence(m));
        return;
    }
    model_info(m, &info);
    ids = xreallocarray(NULL, n, sizeof *ids);
    for (size_t i = 0; i < n; i++)
        ids[i] = id_at(i, info.n_vocab);
    cache_restore(c, model_sequence(m), ids);
    free(ids);
}

/* All batches on one tier and number of threads; the first digest of all is the one to meet. */
static bool run_on(const struct test *t, struct cache *c, const char *tier, unsigned n_threads,
                   uint64_t *digest, bool *have)
{
    struct model_options o = {.n_ctx = t->n_tokens,
                              .n_batch = MIN(t->n_tokens, BATCH_MAX),
                              .n_out = MIN(t->n_tokens, BATCH_MAX),
                              .kv = format_of_name(t->kv)};
    struct loaded_how how = {.threads = n_threads, .tier = tier};
    struct loaded l = loaded_open(t->path, &o, &how);
    bool same = true;

    if (is_long(t))
        fill(c, l.m, t);
    for (size_t i = 0; i < ARRAY_LEN(batches); i++) {
        uint64_t h = digest_of(l.m, t, batches[i]);

        if (!*have)
            *digest = h;
        *have = true;
        if (h == *digest)
            continue;
        printf("FAIL %s: %016llx with %s, %u threads, batch %zu; it was %016llx\n", t->name,
               (unsigned long long)h, tier, n_threads, batches[i], (unsigned long long)*digest);
        same = false;
    }
    loaded_close(&l);
    return same;
}

static void run(const struct test *t)
{
    struct cache cache = {0};
    uint64_t digest = 0;
    bool same = true, have = false;
    int n = 0;

    for (size_t i = 0; i < ARRAY_LEN(tiers); i++) {
        if (!has_tier(tiers[i]))
            continue;
        for (size_t k = 0; k < ARRAY_LEN(threads); k++, n += (int)ARRAY_LEN(batches))
            same &= run_on(t, &cache, tiers[i], threads[k], &digest, &have);
    }
    cache_clear(&cache);
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

/* Longer than a batch and than two chunks of the cache, so that every way of multiplying comes by. */
static void run_long(const char *only)
{
    static const enum format_id formats[] = {FORMAT_q8_0, FORMAT_iq4_xs, FORMAT_q2_k};
    struct tiny_model o = {.family = "qwen3",
                           .fmt = format_of(FORMAT_q4_k),
                           .fmt2 = format_of(FORMAT_q6_k),
                           .n_layers = 1,
                           .n_ctx = 8192,
                           .seed = 1};

    run_tiny(&o, "f16", 600, only);
    run_tiny(&o, "q4_0", 600, only);
    run_tiny(&o, "f16", 4500, only);
    run_tiny(&o, "q8_0", 4500, only);
    o.family = "qwen3moe";
    run_tiny(&o, "q8_0", 600, only);
    o.family = "qwen3";
    o.fmt2 = NULL;
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        o.fmt = format_of(formats[i]);
        run_tiny(&o, "f16", 600, only);
    }
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
    run_long(only);
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
