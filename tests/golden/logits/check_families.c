/*
 * check_families - tiny files of every family and variant against logits that
 * llama.cpp computed from the same numbers.
 *
 *     check_families DIR           DIR/FAMILY.txt for every family
 *     check_families --save DIR    writes the models for a reference: FAMILY.FILE.gguf with f32
 *                                  tensors, FAMILY.FILE.packed where the file has blocks
 *
 * A prompt of 40 tokens, its logits at four positions, every third id; of an
 * encoder every second value of the embedding.  The reference ran with an f32
 * KV cache, without flash attention and with GELU computed, not looked up.
 * Batches and single tokens must give the same bits.
 *
 * FAMILY.txt: for each file a line "VARIANT[-FORMAT] max M noise N act A", then
 * lines of a position and its values.  M: largest logit; N: what the
 * reference's own batch and single tokens differ by; A: what its own products
 * of 8-bit activations put its rows off by, as a share of their length.
 *
 * Allowed are 10 N or M / 10000; of blocks, whose activations are of 8 bits, 3 A
 * or a twentieth of a row.  Where a router decides, one rounded activation can
 * let another expert win: mixtures of blocks are run, but their logits are not
 * compared.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/alloc.h"
#include "common/str.h"
#include "daemon/model/model.h"
#include "tests/support/cpu_backend.h"
#include "tests/support/family_model.h"

#define N_PROMPT 40
#define STEP     3
#define STEP_EMB 2

/* The formats in which each family's first variant is run too. */
static const enum format_id formats[] = {FORMAT_f16, FORMAT_q8_0};

struct result {
    int files, values, failed, mixtures;
    double worst;     /* of a value, as a share of what is allowed */
    double worst_row; /* the same of whole positions, in 8-bit formats */
};

/* Of a file's own line. */
struct golden {
    double max, noise, act;
};

/* A file's name in the stored values; "" when there is no i-th. */
static struct family_file file_at(const char *family, size_t i, char name[64])
{
    struct family_file o = {.family = family, .variant = family_variant(family, i)};
    size_t n = 0;

    while (family_variant(family, n))
        n++;
    name[0] = '\0';
    if (i < n) {
        snprintf(name, 64, "%s", o.variant);
    } else if (i - n < ARRAY_LEN(formats)) {
        o.variant = NULL;
        o.fmt = format_of(formats[i - n]);
        snprintf(name, 64, "%s-%s", family_variant(family, 0), o.fmt->name);
    }
    return o;
}

static void save_file(const struct family_file *o, char *path)
{
    struct gguf_writer w = {0};
    char unused[96];

    family_file_build(o, &w, unused);
    gguf_writer_save(&w, path);
    gguf_writer_clear(&w);
    free(path);
}

static bool is_blocks(const struct family_file *o)
{
    return o->fmt && o->fmt->block_elems > 1;
}

static int save(const char *dir)
{
    char name[64];

    for (size_t i = 0; family_names[i]; i++)
        for (size_t k = 0;; k++) {
            struct family_file o = file_at(family_names[i], k, name);

            if (!name[0])
                break;
            if (is_blocks(&o))
                save_file(&o, xasprintf("%s/%s.%s.packed", dir, o.family, name));
            o.unpacked = true;
            save_file(&o, xasprintf("%s/%s.%s.gguf", dir, o.family, name));
        }
    return 0;
}

/* Logits of the whole prompt in batches of step. */
static int eval(struct model *m, size_t n_vocab, size_t step, float *out, struct err *err)
{
    int32_t ids[N_PROMPT], rows[N_PROMPT];
    int r = 0;

    sequence_truncate(model_sequence(m), 0);
    for (int i = 0; i < N_PROMPT; i++) {
        ids[i] = (i * 37 + 11) % FAMILY_N_VOCAB;
        rows[i] = i;
    }
    for (size_t at = 0; at < N_PROMPT && r >= 0; at += step) {
        size_t k = MIN(step, N_PROMPT - at);
        const float *logits = NULL;

        r = model_eval(m, ids + at, k, rows, k, NULL, &logits, err);
        if (r >= 0)
            memcpy(out + at * n_vocab, logits, k * n_vocab * sizeof *out);
    }
    return r;
}

static int embed(struct model *m, float *out, struct err *err)
{
    int32_t ids[N_PROMPT];

    for (int i = 0; i < N_PROMPT; i++)
        ids[i] = (i * 37 + 11) % FAMILY_N_VOCAB;
    return model_embed(m, ids, N_PROMPT, NULL, out, err);
}

/* What the model gives, row by row of *ret_n values; NULL and a line when something fails. */
static float *run(const struct family_file *o, const char *name, struct cpu_backend *cpu,
                  size_t *ret_n, bool *ret_mixture)
{
    struct model_options mo = {
        .n_ctx = 64, .n_batch = N_PROMPT, .n_out = N_PROMPT, .kv = format_of(FORMAT_f32)};
    struct ledger *ledger = ledger_create();
    struct gguf_writer w = {0};
    struct model *m = NULL;
    struct model_info info = {0};
    struct err err = {0};
    float *out = NULL, *single = NULL;
    char unused[96], *path;
    bool ok = false;
    int fd;

    family_file_build(o, &w, unused);
    fd = gguf_writer_memfd(&w);
    path = gguf_writer_fd_path(fd);
    gguf_writer_clear(&w);
    if (model_open(path, &m, &err) < 0 ||
        model_load(m, &mo, ledger, cpu->ops, cpu->be, NULL, NULL, NULL, &err) < 0)
        goto out;
    model_info(m, &info);
    *ret_mixture = info.n_experts > 0;
    *ret_n = info.pooling ? info.n_embd : info.n_vocab;
    out = xcalloc(N_PROMPT * *ret_n, sizeof *out);
    single = xcalloc(N_PROMPT * *ret_n, sizeof *single);
    if (info.pooling) {
        ok = embed(m, out, &err) >= 0;
    } else if (eval(m, *ret_n, N_PROMPT, out, &err) >= 0 && eval(m, *ret_n, 1, single, &err) >= 0) {
        ok = memcmp(out, single, N_PROMPT * *ret_n * sizeof *out) == 0;
        if (!ok)
            err_set(&err, ERR_INTERNAL, "single tokens give other bits than a batch");
    }
out:
    if (!ok)
        printf("FAIL families/%s %s: %s\n", o->family, name, err.text);
    model_close(m);
    ledger_destroy(ledger);
    free(path);
    close(fd);
    free(single);
    if (ok)
        return out;
    free(out);
    return NULL;
}

/*
 * One stored line of a position against a row; false when the line is not what
 * it should be.  Adds the squares of differences and values.
 */
static bool compare_row(const char *line, const float *row, size_t n, size_t first, size_t step,
                        double *ret_worst, double *diff2, double *want2, int *ret_n)
{
    char *end;

    for (size_t i = first; i < n; i += step, ++*ret_n) {
        double want = strtod(line, &end), d = fabs(row[i] - want);

        if (end == line || isnan(d))
            return false;
        line = end;
        *ret_worst = fmax(*ret_worst, d);
        *diff2 += d * d;
        *want2 += want * want;
    }
    return *line == '\n';
}

/* The lines behind a file's own, up to the next file. */
static bool compare(FILE *f, const struct golden *g, bool blocks, const float *got, size_t n,
                    struct result *r)
{
    char line[4096], *p;
    double allowed = fmax(10 * g->noise, 1e-4 * g->max), allowed_row = fmax(3 * g->act, 5e-2);
    long at = ftell(f);
    int lines = 0;

    while (fgets(line, sizeof line, f) && line[0] >= '0' && line[0] <= '9') {
        size_t pos = strtoul(line, &p, 10);
        bool pooled = n != FAMILY_N_VOCAB;
        double worst = 0, diff2 = 0, want2 = 0;

        lines++;
        at = ftell(f);
        if (pos >= N_PROMPT ||
            !compare_row(p, got + pos * n, n, pooled ? 0 : pos % STEP, pooled ? STEP_EMB : STEP,
                         &worst, &diff2, &want2, &r->values))
            return false;
        if (blocks)
            r->worst_row = fmax(r->worst_row, sqrt(diff2 / want2) / allowed_row);
        else
            r->worst = fmax(r->worst, worst / allowed);
    }
    fseek(f, at, SEEK_SET);
    return lines > 0;
}

/* Looks for the file's line; false when it is not there. */
static bool find(FILE *f, const char *name, struct golden *ret)
{
    char line[4096], head[80];
    size_t n = (size_t)snprintf(head, sizeof head, "%s max ", name);

    rewind(f);
    while (fgets(line, sizeof line, f))
        if (strncmp(line, head, n) == 0)
            return sscanf(line + n, "%lf noise %lf act %lf", &ret->max, &ret->noise, &ret->act) ==
                   3;
    return false;
}

static void check_file(const struct family_file *o, const char *name, FILE *f,
                       struct cpu_backend *cpu, struct result *r)
{
    double worst = r->worst, worst_row = r->worst_row;
    bool mixture = false;
    struct golden g;
    size_t n = 0;
    float *got = run(o, name, cpu, &n, &mixture);

    r->files++;
    r->worst = r->worst_row = 0;
    if (!got) {
        r->failed++;
    } else if (is_blocks(o) && mixture) {
        r->mixtures++;
    } else if (!f || !find(f, name, &g) || !compare(f, &g, is_blocks(o), got, n, r)) {
        printf("FAIL families/%s %s: no values to compare with\n", o->family, name);
        r->failed++;
    } else if (!(r->worst <= 1 && r->worst_row <= 1)) {
        printf("FAIL families/%s %s: off by %.3g of what is allowed\n", o->family, name,
               fmax(r->worst, r->worst_row));
        r->failed++;
    }
    r->worst = fmax(r->worst, worst);
    r->worst_row = fmax(r->worst_row, worst_row);
    free(got);
}

static struct result check(const char *dir, const char *family, struct cpu_backend *cpu)
{
    char *path = xasprintf("%s/%s.txt", dir, family), name[64];
    FILE *f = fopen(path, "r");
    struct result r = {0};

    for (size_t i = 0;; i++) {
        struct family_file o = file_at(family, i, name);

        if (!name[0])
            break;
        check_file(&o, name, f, cpu, &r);
    }
    if (!r.failed)
        printf("pass families/%s: %d files, %d values, worst %.2g of what is allowed, %.2g in 8 "
               "bits\n",
               family, r.files, r.values, r.worst, r.worst_row);
    if (f)
        fclose(f);
    free(path);
    return r;
}

int main(int argc, char **argv)
{
    int passed = 0, failed = 0, files = 0, values = 0, mixtures = 0;
    struct cpu_backend cpu;

    if (argc == 3 && strcmp(argv[1], "--save") == 0)
        return save(argv[2]);
    if (argc != 2) {
        fputs("usage: check_families DIR | --save DIR\n", stderr);
        return 2;
    }
    cpu = cpu_backend_open(1, NULL);
    for (size_t i = 0; family_names[i]; i++) {
        struct result r = check(argv[1], family_names[i], &cpu);

        *(r.failed ? &failed : &passed) += 1;
        files += r.files;
        values += r.values;
        mixtures += r.mixtures;
    }
    cpu_backend_close(&cpu);
    printf("families: %d passed, %d failed; %d files (%d mixtures of blocks not compared), %d "
           "values\n",
           passed, failed, files, mixtures, values);
    return failed ? 1 : 0;
}
