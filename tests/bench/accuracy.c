/*
 * accuracy - how far a format's arithmetic moves a model's logits.
 *
 *     accuracy --list
 *     accuracy FORMAT DIR
 *
 * Makes a small random model with all matrices in the format, DIR/FORMAT.gguf,
 * and the same one with every weight decoded to f32, DIR/f32.gguf; computes
 * both, and prints the relative L2 distance of the logits after some prompts,
 * each row less its mean (a constant of a row changes no probability).  The
 * logits of the f32 model are left in DIR/f32.logits, for others that compute
 * the same two files (accuracy.py).
 */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/alloc.h"
#include "tests/support/die.h"
#include "tests/support/loaded.h"
#include "tests/support/mkmodel.h"

/* accuracy.py makes the same ids. */
#define N_PROMPTS 24
#define N_IDS     32
#define N_VOCAB   600

static struct mkmodel options(const char *type)
{
    struct mkmodel o = {.preset = *mkmodel_preset_of("qwen3-0.6b"), .seed = 1};

    o.preset.n_layers = 2;
    o.preset.n_vocab = N_VOCAB;
    o.type = mkmodel_type_of(type);
    return o;
}

/* -- the same model in f32 --------------------------------------------------------------------- */

static void decode_tensor(const struct gguf *g, const struct gguf_writer_tensor *t, FILE *f)
{
    const struct gguf_tensor *from = gguf_find_tensor(g, t->name);
    size_t n = t->bytes / sizeof(float);
    float *x = xreallocarray(NULL, n, sizeof *x);
    void *bytes = xmalloc(from->bytes);

    if (pread(gguf_fd(g, from->part), bytes, from->bytes, (off_t)from->offset) !=
        (ssize_t)from->bytes)
        die("%s: cannot be read", t->name);
    from->fmt->to_f32(bytes, x, n);
    fwrite(x, sizeof *x, n, f);
    for (size_t pad = t->bytes; pad % 32; pad++)
        putc(0, f);
    free(bytes);
    free(x);
}

static void save_decoded(const char *from, const char *to)
{
    struct mkmodel o = options("F32");
    struct mkmodel_plan plan;
    struct gguf *g = NULL;
    struct str head = {0};
    struct err err = {0};
    FILE *f = fopen(to, "wb");

    if (!f)
        die("%s: cannot be written", to);
    if (gguf_open(from, &g, &err) < 0)
        die("%s: %s", from, err.text);
    mkmodel_plan(&o, &plan);
    gguf_writer_head(&plan.w, &head);
    fwrite(head.p, 1, head.len, f);
    for (size_t i = 0; i < plan.w.n_tensors; i++)
        decode_tensor(g, &plan.w.tensors[i], f);
    if (fclose(f) != 0)
        die("%s: cannot be written", to);
    str_clear(&head);
    mkmodel_plan_clear(&plan);
    gguf_close(g);
}

/* -- logits --------------------------------------------------------------------------------------- */

static void less_mean(float *row)
{
    double sum = 0;

    for (size_t i = 0; i < N_VOCAB; i++)
        sum += (double)row[i];
    for (size_t i = 0; i < N_VOCAB; i++)
        row[i] -= (float)(sum / N_VOCAB);
}

static void compute(const char *path, float (*ret)[N_VOCAB])
{
    struct model_options o = {.n_ctx = N_IDS, .n_batch = N_IDS, .n_out = 1};
    struct loaded l = loaded_open(path, &o, &(struct loaded_how){.threads = 2});
    const int32_t last = N_IDS - 1;

    for (int p = 0; p < N_PROMPTS; p++) {
        int32_t ids[N_IDS];

        for (int i = 0; i < N_IDS; i++)
            ids[i] = (p * 131 + i * 37 + 11) % N_VOCAB;
        sequence_truncate(model_sequence(l.m), 0);
        memcpy(ret[p], must_eval(l.m, ids, N_IDS, &last, 1), sizeof *ret);
        less_mean(ret[p]);
    }
    loaded_close(&l);
}

static double distance(const float *a, const float *b, size_t n)
{
    double diff = 0, norm = 0;

    for (size_t i = 0; i < n; i++) {
        diff += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        norm += (double)b[i] * (double)b[i];
    }
    return sqrt(diff / norm);
}

static void measure(const struct format *f, const char *dir)
{
    struct mkmodel_type type = {f->name, 0, format_id_of(f), format_id_of(f), format_id_of(f)};
    static float quantised[N_PROMPTS][N_VOCAB], decoded[N_PROMPTS][N_VOCAB];
    char *path = xasprintf("%s/%s.gguf", dir, f->name), *plain = xasprintf("%s/f32.gguf", dir);
    char *logits = xasprintf("%s/f32.logits", dir);
    struct mkmodel o = options("F32");
    FILE *out;

    o.type = &type;
    mkmodel_save(&o, path);
    save_decoded(path, plain);
    compute(path, quantised);
    compute(plain, decoded);
    out = fopen(logits, "wb");
    if (!out || fwrite(decoded, sizeof decoded, 1, out) != 1 || fclose(out) != 0)
        die("%s: cannot be written", logits);
    printf("%.6g\n", distance(quantised[0], decoded[0], (size_t)N_PROMPTS * N_VOCAB));
    free(logits);
    free(plain);
    free(path);
}

static bool holds_weights(const struct format *f)
{
    return f->from_f32 && (f->gguf_type < 24 || f->gguf_type > 28) && f->gguf_type != 0;
}

int main(int argc, char **argv)
{
    const struct format *f;

    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (int i = 0; i < FORMAT_COUNT; i++)
            if (holds_weights(format_of(i)))
                puts(format_of(i)->name);
        return 0;
    }
    if (argc != 3) {
        fputs("usage: accuracy --list | accuracy FORMAT DIR\n", stderr);
        return 2;
    }
    f = format_of_name(argv[1]);
    if (!f || !holds_weights(f))
        die("%s: is no format of weights; --list names them", argv[1]);
    measure(f, argv[2]);
    return 0;
}
